package sqlitelock

import (
	"context"
	"database/sql"
)

// A preparer is a *sql.DB or a *sql.Conn.
type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// statements are prepared ones, by their text. They are to be closed: a
// database/sql connection does not close those of its own, and SQLite keeps its
// files open until they are. They are prepared before they are needed: whoever
// has a connection must not wait for another one to prepare on.
type statements map[string]*sql.Stmt

func (s *statements) prepare(on preparer, queries ...string) error {
	s.close()
	*s = statements{}
	for _, query := range queries {
		stmt, err := on.PrepareContext(context.Background(), query)
		if err != nil {
			return err
		}
		(*s)[query] = stmt
	}
	return nil
}

func (s statements) close() {
	for _, stmt := range s {
		_ = stmt.Close()
	}
}

// prepareRead prepares what the connections need that never write.
func (s *statements) prepareRead(on preparer) error {
	return s.prepare(on, lookSQL, noticeSQL, recallSQL, vaultSQL, leasesSQL, placesSQL, ranksSQL,
		queueLengthSQL, lastTokenSQL, pageSQL, brokenSQL, brokenSinceSQL, lastBrokenSQL)
}

// prepareWrite prepares what the connection needs that writes.
func (s *statements) prepareWrite(on preparer) error {
	return s.prepare(on, beginSQL, commitSQL, rollbackSQL, lookSQL,
		putTokenSQL, grantSQL, heldSQL, lengthenSQL, downgradeSQL, endSQL, endAloneSQL, keepClosedSQL, cancelSQL,
		givePlaceSQL, headSQL, lengthenPlaceSQL, tellHeadSQL, removePlaceSQL, giveUpPlaceSQL, giveUpOnceSQL,
		recallSQL, completedBySQL, completeSQL, forgetSQL,
		vaultSQL, depositSQL, redeemSQL, revokeSQL, pruneSQL, emptySQL, moreSQL,
		brokenSQL, breakSQL, putBrokenSQL, trimBrokenSQL, purgeLeasesSQL, purgePlacesSQL,
		sweepLeasesSQL, sweepPlacesSQL, sweepCancelledSQL, sweepRecordsSQL, sweepBrokenSQL, sweepTokensSQL)
}
