"""How a database refuses a late holder: python3 guard.py (SQLite; any SQL is alike).

Each row has the greatest token that has written to it. A transaction begins by advancing
that, before it reads anything, so that whatever it reads stays true until it commits.
"""

import sqlite3


class Stale(Exception):
    """A later holder was here."""


def book(db, seat, customer, token):
    with db:  # commits, or rolls back if anything is raised
        advanced = db.execute("UPDATE seats SET fence = ? WHERE id = ? AND fence <= ?", (token, seat, token))
        if advanced.rowcount == 0:
            raise Stale(f"seat {seat}: a later holder than {token} was here")
        (taken,) = db.execute("SELECT customer FROM seats WHERE id = ?", (seat,)).fetchone()
        if taken is None:
            db.execute("UPDATE seats SET customer = ? WHERE id = ?", (customer, seat))
        return taken is None


def main():
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE seats (id text PRIMARY KEY, customer text, fence bigint NOT NULL DEFAULT 0)")
    db.execute("INSERT INTO seats (id) VALUES ('12A')")
    db.commit()
    print("ada", book(db, "12A", "ada", token=8))  # the holder
    try:
        book(db, "12A", "bob", token=7)  # an earlier one, which was paused, and wakes up
    except Stale as e:
        print("bob is refused:", e)
    print(db.execute("SELECT customer, fence FROM seats").fetchone())


if __name__ == "__main__":
    main()
