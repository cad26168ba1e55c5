package sqlitelock

import (
	"context"
	"database/sql"
)

// A preparer is a *sql.DB or a *sql.Conn.
type preparer interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// prepared are statements to close: a database/sql connection does not close
// those of its own, and SQLite keeps its files open until they are.
type prepared []*sql.Stmt

func (p *prepared) add(on preparer, statements map[**sql.Stmt]string) error {
	for into, query := range statements {
		stmt, err := on.PrepareContext(context.Background(), query)
		if err != nil {
			return err
		}
		*into = stmt
		*p = append(*p, stmt)
	}
	return nil
}

func (p *prepared) close() {
	for _, stmt := range *p {
		_ = stmt.Close()
	}
	*p = nil
}

// readStatements are prepared on the connections that never write.
type readStatements struct {
	prepared
	look, notice, recall, vault                         *sql.Stmt
	leases, places, ranks, queueLength, lastToken, page *sql.Stmt
	broken, brokenSince, lastBroken                     *sql.Stmt
}

// writeStatements are prepared on the one connection that writes.
type writeStatements struct {
	prepared
	begin, commit, rollback, look                          *sql.Stmt
	nextToken, grant, held, lengthen, downgrade            *sql.Stmt
	end, endAlone, keepClosed, cancel                      *sql.Stmt
	givePlace, head, lengthenPlace, tellHead               *sql.Stmt
	removePlace, giveUpPlace, giveUpOnce                   *sql.Stmt
	recall, completedBy, complete, forget                  *sql.Stmt
	vault, deposit, redeem, revoke, prune, empty, more     *sql.Stmt
	broken, breakLeases, putBroken, trimBroken             *sql.Stmt
	purgeLeases, purgePlaces                               *sql.Stmt
	sweepLeases, sweepPlaces, sweepCancelled, sweepRecords *sql.Stmt
	sweepBroken, sweepTokens                               *sql.Stmt
}

func (s *readStatements) prepare(on preparer) error {
	s.close()
	return s.add(on, map[**sql.Stmt]string{
		&s.look:        lookSQL,
		&s.notice:      noticeSQL,
		&s.recall:      recallSQL,
		&s.leases:      leasesSQL,
		&s.places:      placesSQL,
		&s.lastToken:   lastTokenSQL,
		&s.page:        pageSQL,
		&s.ranks:       ranksSQL,
		&s.queueLength: queueLengthSQL,
		&s.vault:       vaultSQL,
		&s.broken:      brokenSQL,
		&s.brokenSince: brokenSinceSQL,
		&s.lastBroken:  lastBrokenSQL,
	})
}

func (s *writeStatements) prepare(on preparer) error {
	s.close()
	return s.add(on, map[**sql.Stmt]string{
		&s.begin:          `BEGIN IMMEDIATE`,
		&s.commit:         `COMMIT`,
		&s.rollback:       `ROLLBACK`,
		&s.look:           lookSQL,
		&s.nextToken:      nextTokenSQL,
		&s.grant:          grantSQL,
		&s.lengthen:       lengthenSQL,
		&s.end:            endSQL,
		&s.endAlone:       endAloneSQL,
		&s.keepClosed:     keepClosedSQL,
		&s.breakLeases:    breakSQL,
		&s.putBroken:      putBrokenSQL,
		&s.trimBroken:     trimBrokenSQL,
		&s.broken:         brokenSQL,
		&s.sweepBroken:    sweepBrokenSQL,
		&s.downgrade:      downgradeSQL,
		&s.purgeLeases:    purgeLeasesSQL,
		&s.cancel:         cancelSQL,
		&s.head:           headSQL,
		&s.givePlace:      givePlaceSQL,
		&s.lengthenPlace:  lengthenPlaceSQL,
		&s.held:           heldSQL,
		&s.tellHead:       tellHeadSQL,
		&s.removePlace:    removePlaceSQL,
		&s.giveUpPlace:    giveUpPlaceSQL,
		&s.giveUpOnce:     giveUpOnceSQL,
		&s.purgePlaces:    purgePlacesSQL,
		&s.recall:         recallSQL,
		&s.completedBy:    completedBySQL,
		&s.complete:       completeSQL,
		&s.forget:         forgetSQL,
		&s.vault:          vaultSQL,
		&s.deposit:        depositSQL,
		&s.redeem:         redeemSQL,
		&s.revoke:         revokeSQL,
		&s.prune:          pruneSQL,
		&s.empty:          emptySQL,
		&s.more:           moreSQL,
		&s.sweepLeases:    sweepLeasesSQL,
		&s.sweepPlaces:    sweepPlacesSQL,
		&s.sweepCancelled: sweepCancelledSQL,
		&s.sweepRecords:   sweepRecordsSQL,
		&s.sweepTokens:    sweepTokensSQL,
	})
}
