package dashboard

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
)

// The page's scripts, libraries included, are sent as one: the browser sends one request, and
// compression is better. The scripts share one scope, so no two of them may use the same name at
// their top. An import then only decides which script comes first. Only the forms below are
// understood; anything else is an error, which a test finds before a browser does.
type forms struct {
	importing, exporting, unknown, identifier *regexp.Regexp
}

// newForms is called when a page is made: commands without a page must not pay for it.
func newForms() *forms {
	return &forms{
		importing:  regexp.MustCompile(`(?m)^import \{([^}]*)\} from "([^"]+)";\n`),
		exporting:  regexp.MustCompile(`(?m)^export ((?:async )?function|class|const) (\w+|\{[\w, ]*\})`),
		unknown:    regexp.MustCompile(`(?m)^(?:import|export)\b.*$|\bimport(?:\(|\.meta).*$`),
		identifier: regexp.MustCompile(`\w+(?: as \w+)?`), // no script exports one with "as"
	}
}

// A joiner makes one script of several.
type joiner struct {
	*forms
	scripts map[string][]byte   // by their paths
	exports map[string][]string // of the scripts that were added; nil while a script is being added
	out     bytes.Buffer
}

// join returns one script that does what entry does, with all that it imports.
func join(scripts map[string][]byte, entry string) ([]byte, error) {
	j := &joiner{forms: newForms(), scripts: scripts, exports: map[string][]string{}}
	if err := j.add(entry); err != nil {
		return nil, err
	}
	for name := range scripts {
		if _, used := j.exports[name]; !used {
			return nil, fmt.Errorf("%s: no script imports it", name)
		}
	}
	return j.out.Bytes(), nil
}

// add writes a script after all scripts that it imports.
func (j *joiner) add(name string) error {
	if exports, begun := j.exports[name]; begun {
		if exports == nil {
			return fmt.Errorf("%s: it imports itself, through others", name)
		}
		return nil
	}
	body, found := j.scripts[name]
	if !found {
		return fmt.Errorf("%s: there is no such script", name)
	}
	j.exports[name] = nil
	for _, m := range j.importing.FindAllSubmatch(body, -1) {
		from := path.Join(path.Dir(name), string(m[2]))
		if err := j.add(from); err != nil {
			return err
		}
		for _, one := range j.names(m[1]) {
			if !slices.Contains(j.exports[from], one) {
				return fmt.Errorf("%s: %s does not export %s", name, from, one)
			}
		}
	}
	exports := []string{}
	for _, m := range j.exporting.FindAllSubmatch(body, -1) {
		exports = append(exports, j.names(m[2])...)
	}
	body = j.importing.ReplaceAll(body, nil)
	body = j.exporting.ReplaceAll(body, []byte("$1 $2"))
	if left := j.unknown.Find(body); left != nil {
		return fmt.Errorf("%s: this form is not understood: %s", name, left)
	}
	j.exports[name] = exports
	j.out.Write(bareScript(body))
	return nil
}

// names returns the names of a list.
func (f *forms) names(list []byte) (all []string) {
	for _, name := range f.identifier.FindAll(list, -1) {
		all = append(all, string(name))
	}
	return all
}
