package driverdoor

import (
	"context"

	"github.com/holdfast-locks/holdfast/httplock/server/internal/door"
)

// split asks for the parts of a batch by the routes of their names, all at the same time.
// An engine that has not heard of the routes yet puts everything into one batch. If there
// were several routes split returns them, for each request.
func split[Req, Reply any](
	v *visit, reqs []Req, name func(Req) string, ask func(context.Context, []Req) []Reply, failed func(error) Reply,
) (replies []Reply, routes []uint32, err error) {
	routes = door.Routes(v.House.Features.Router, reqs, name)
	replies, err = door.Split(v.ctx, v.Request, routes, reqs, ask, failed)
	return replies, routes, err
}
