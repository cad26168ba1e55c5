package door

import (
	"github.com/holdfast-locks/holdfast/driver"
	"github.com/holdfast-locks/holdfast/httplock/server/caller"
)

// Named returns the name for a wildcard in the path of a request. It returns a refusal unless
// the caller has this right to the name.
func (r *Request) Named(wildcard string, right caller.Rights) (string, error) {
	name, err := r.Name(wildcard)
	if err != nil {
		return "", err
	}
	return name, r.Need(right, name)
}

// Name returns the name for a wildcard in the path of a request, if it is valid.
func (r *Request) Name(wildcard string) (string, error) {
	name, err := PathName(r.Request, wildcard)
	if err != nil {
		return "", err
	}
	if err := driver.CheckName(name); err != nil {
		return "", Invalid(err.Error())
	}
	return name, nil
}

// Replace puts v into c, which has room for one value, and drops an older value.
func Replace[T any](c chan T, v T) {
	for {
		select {
		case c <- v:
			return
		default:
		}
		select {
		case <-c:
		default:
		}
	}
}
