package door

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/holdfast-locks/holdfast/driver"
)

// InQuery in a path refers to the name in the query.
const InQuery = "~"

// PathName returns the name of a lock or a do-once key in the path of a request. If the path
// has "~" instead, the name is in the query, as name=. Some proxies decode a path before they
// pass it on, which splits a name like orders%2F42. Without name= in the query, "~" is a name.
func PathName(r *http.Request, wildcard string) (string, error) {
	name := r.PathValue(wildcard)
	if name != InQuery || r.URL.RawQuery == "" {
		return name, nil
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return "", Invalid("the query is not one: " + err.Error())
	}
	switch names := q["name"]; len(names) {
	case 0:
		return name, nil
	case 1:
		return names[0], nil
	default:
		return "", Invalid(fmt.Sprintf("the query has %d names: want one", len(names)))
	}
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
