"""What holdfast.py can do: python3 demo.py URL[,URL...] COMMAND ARG..."""

import os
import sys
import threading
import time

import holdfast


def count(client, name, file, times):
    """Add 1 to the number in a file, as others do at the same time."""
    for _ in range(int(times)):
        with client.lock(name, ttl=10, wait=60) as lease:
            with open(file) as f:
                n = int(f.read())
            time.sleep(0.002)  # for anybody else to read the same number
            lease.check()
            with open(file, "w") as f:
                f.write(str(n + 1))


def held(client, name, ttl):
    """A lock: by a stream if STREAM is set, by a direct one if it is direct."""
    stream = os.environ.get("STREAM")
    if stream:
        return client.hold(name, ttl=float(ttl), wait=60, direct=stream == "direct")
    return client.lock(name, ttl=float(ttl), wait=60)


def hold(client, name, ttl):
    """Hold a lock until the input ends."""
    with held(client, name, ttl) as lease:
        print("acquired", lease.token, flush=True)
        done = threading.Event()
        threading.Thread(target=lambda: (sys.stdin.read(), done.set()), daemon=True).start()
        while not done.wait(0.02):
            lease.check()
    print("released")


def run(client, name, ttl, *command):
    """Run a command under a lock."""
    with held(client, name, ttl) as lease:
        sys.exit(lease.run(command))


def take(client, name):
    """Take a lock if it is free."""
    with client.lock(name) as lease:
        print("acquired", lease.token)


def once(client, key, value):
    """Do work once, whoever else does it too."""

    def work(lease):
        print("working", lease.token)
        return {"value": value}

    print("result", client.once(key, work, wait=60)["value"])


def main():
    _, urls, command, *args = sys.argv
    client = holdfast.Client(urls.replace(",", " "), token=os.environ.get("HOLDFAST_TOKEN"))
    try:
        {"count": count, "hold": hold, "run": run, "take": take, "once": once}[command](client, *args)
    except holdfast.Problem as e:
        sys.exit(e.code)
    except holdfast.Unavailable:
        sys.exit("unavailable")


main()
