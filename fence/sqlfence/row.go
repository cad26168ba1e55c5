package sqlfence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/fence"
)

// ErrNoRow: an update of the column form changed nothing because the row does not
// exist, not because the token is stale.
var ErrNoRow = errors.New("no such row")

// A Row is a row that carries the token of its last holder in a column of its
// own, for CheckRow.
type Row struct {
	Resource string // names the row in errors: "seat/12A"
	Query    string // reads the column of the row: SELECT fence FROM seats WHERE id = $1
	Args     []any  // of Query
}

// CheckRow reports what an UPDATE of the column form did. The column is declared
// as "fence bigint NOT NULL DEFAULT 0", and every UPDATE of the row names it
// by its key and its fence, and by nothing else:
//
//	UPDATE seats SET fence = $1              WHERE id = $2 AND fence <= $1  -- the advance
//	SELECT ... FROM seats WHERE id = $2
//	UPDATE seats SET fence = $1, holder = $3 WHERE id = $2 AND fence <= $1  -- a write
//
// The first is the Advance and has to come before anything is read. Check the
// result of each. They may be statements of one transaction or, each with its
// CheckRow in a transaction of its own, of several.
//
// CheckRow returns nil if the row was matched, a *fence.StaleError if it carries a greater
// token, and ErrNoRow if there was no such row when the UPDATE ran. Pass the transaction of the
// UPDATE. CheckRow sends a statement only if the UPDATE changed no row.
//
// The column has no lease ID, so that two holders with equal tokens both pass.
// All tokens of one row must come from one lock, where no two are equal.
func (d Dialect) CheckRow(ctx context.Context, tx Tx, result sql.Result, row Row, c fence.Claim) error {
	if err := fence.CheckClaim(row.Resource, c); err != nil {
		return err
	}
	changed, err := result.RowsAffected()
	if err != nil {
		return failed("check the row of", row.Resource, err)
	}
	if changed > 0 {
		return nil
	}
	query := row.Query
	if d == MySQL {
		// A plain SELECT may see an older version than the UPDATE saw.
		query += " LOCK IN SHARE MODE"
	}
	var current sql.NullInt64
	err = tx.QueryRowContext(ctx, query, row.Args...).Scan(&current)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("fence: resource %q: %w", row.Resource, ErrNoRow)
	case err != nil:
		return failed("check the row of", row.Resource, err)
	case !current.Valid:
		return failed("check the row of", row.Resource, fmt.Errorf("%w column: it is NULL, which compares with no token: declare it NOT NULL DEFAULT 0", driver.ErrInvalid))
	case current.Int64 > int64(c.Token()):
		return &fence.StaleError{Resource: row.Resource, Token: c.Token(), Current: uint64(current.Int64)}
	case current.Int64 == int64(c.Token()) && d == MySQL:
		// MySQL does not count a row that it matched but did not change.
		return nil
	}
	// The UPDATE would have matched the present row, so the row came later.
	return fmt.Errorf("fence: resource %q: %w when the update ran", row.Resource, ErrNoRow)
}
