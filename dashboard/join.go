package dashboard

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// The page's scripts, libraries included, are sent as one: the browser sends one request, and
// compression is better. Each script becomes a function that returns the exports of the script,
// so that two scripts may use the same names. Only the forms below are understood; anything
// else is an error, which a test finds before a browser does.
type forms struct {
	importing, passing, listing, exporting, unknown, identifier *regexp.Regexp

	// Of libraries, which are one line.
	moving, standard *regexp.Regexp
}

// newForms is called when a page is made: commands without a page must not pay for it.
func newForms() *forms {
	return &forms{
		importing:  regexp.MustCompile(`(?m)^import (?:(\w+)|\{([^}]*)\}) from "([^"]+)";\n`),
		passing:    regexp.MustCompile(`(?m)^export \{([^}]*)\} from "([^"]+)";\n`),
		listing:    regexp.MustCompile(`(?m)^export \{([^}]*)\};\n`),
		exporting:  regexp.MustCompile(`(?m)^export ((?:async )?function|class|const) (\w+)`),
		unknown:    regexp.MustCompile(`(?m)^(?:import|export)\b.*$|\bimport(?:\(|\.meta).*$`),
		identifier: regexp.MustCompile(`^([\w$]+)(?: as ([\w$]+))?$`),
		moving:     regexp.MustCompile(`\b(import|export)\{([^{}]*)\}(?:from("[^"]+"))?;`),
		standard:   regexp.MustCompile(`\bexport default function\(`),
	}
}

// A joiner makes one script of several.
type joiner struct {
	*forms
	scripts map[string][]byte          // by their paths
	exports map[string]map[string]bool // of the scripts that were added; nil while a script is being added
	out     bytes.Buffer
}

// join returns one script that does what entry does, with all that it imports.
func join(scripts map[string][]byte, entry string) ([]byte, error) {
	j := &joiner{forms: newForms(), scripts: scripts, exports: map[string]map[string]bool{}}
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

// lines returns a library with its imports and exports on lines of their own.
func (f *forms) lines(library []byte) []byte {
	library = f.moving.ReplaceAllFunc(library, func(form []byte) []byte {
		m := f.moving.FindSubmatch(form)
		if len(m[3]) == 0 {
			return fmt.Appendf(nil, "\n%s {%s};\n", m[1], m[2])
		}
		return fmt.Appendf(nil, "\n%s {%s} from %s;\n", m[1], m[2], m[3])
	})
	return f.standard.ReplaceAll(library, []byte("\nexport {$$default as default};\nconst $$default = function("))
}

// variable returns the name of a script in the joined script.
func variable(name string) string {
	return "$" + strings.NewReplacer("/", "_", "-", "_").Replace(strings.TrimSuffix(name, ".js"))
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
	library := strings.HasPrefix(name, "vendor/")
	if library {
		body = j.lines(body)
	}
	for other := range j.scripts {
		if bytes.Contains(body, []byte(variable(other))) {
			return fmt.Errorf("%s: it uses the name %s", name, variable(other))
		}
	}
	returned := map[string]string{} // exports, with their expressions
	for _, m := range j.importing.FindAllSubmatch(body, -1) {
		names := string(m[2])
		if len(m[1]) > 0 {
			names = "default as " + string(m[1])
		}
		var taken []string
		from, err := j.from(name, string(m[3]), names, func(theirs, ours string) {
			if theirs != ours {
				ours = theirs + ": " + ours
			}
			taken = append(taken, ours)
		})
		if err != nil {
			return err
		}
		body = bytes.Replace(body, m[0], fmt.Appendf(nil, "const {%s} = %s;\n", strings.Join(taken, ", "), from), 1)
	}
	for _, m := range j.passing.FindAllSubmatch(body, -1) {
		var names []string
		from, err := j.from(name, string(m[2]), string(m[1]), func(theirs, ours string) { names = append(names, theirs, ours) })
		if err != nil {
			return err
		}
		for i := 0; i < len(names); i += 2 {
			returned[names[i+1]] = from + "." + names[i]
		}
		body = bytes.Replace(body, m[0], nil, 1)
	}
	for _, m := range j.listing.FindAllSubmatch(body, -1) {
		if err := j.each(name, string(m[1]), func(ours, theirs string) { returned[theirs] = ours }); err != nil {
			return err
		}
		body = bytes.Replace(body, m[0], nil, 1)
	}
	for _, m := range j.exporting.FindAllSubmatch(body, -1) {
		returned[string(m[2])] = ""
	}
	body = j.exporting.ReplaceAll(body, []byte("$1 $2"))
	if left := j.unknown.Find(body); left != nil {
		return fmt.Errorf("%s: this form is not understood: %s", name, left)
	}
	if !library {
		body = bareScript(body)
	}
	j.write(name, body, returned)
	return nil
}

// from adds the script of an import, and calls each with every imported name: as that script
// calls it, and as this one does. It returns the variable that has the exports.
func (j *joiner) from(name, address, names string, each func(theirs, ours string)) (string, error) {
	from := path.Join(path.Dir(name), address)
	if err := j.add(from); err != nil {
		return "", err
	}
	missing := ""
	err := j.each(name, names, func(theirs, ours string) {
		if !j.exports[from][theirs] {
			missing = theirs
		}
		each(theirs, ours)
	})
	if err == nil && missing != "" {
		err = fmt.Errorf("%s: %s does not export %s", name, from, missing)
	}
	return variable(from), err
}

// each calls each for every entry of a list, with the name and the name after as.
func (j *joiner) each(name, names string, each func(name, as string)) error {
	for one := range strings.SplitSeq(names, ",") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		m := j.identifier.FindStringSubmatch(one)
		if m == nil {
			return fmt.Errorf("%s: this name is not understood: %s", name, one)
		}
		each(m[1], cmp.Or(m[2], m[1]))
	}
	return nil
}

// write writes a script as a function. The function returns the exports when it has run, so no
// export may change later.
func (j *joiner) write(name string, body []byte, returned map[string]string) {
	j.exports[name] = map[string]bool{}
	if len(returned) == 0 {
		fmt.Fprintf(&j.out, "(() => {\n%s})();\n", body)
		return
	}
	fmt.Fprintf(&j.out, "const %s = (() => {\n%sreturn {", variable(name), body)
	for _, export := range slices.Sorted(maps.Keys(returned)) {
		j.exports[name][export] = true
		j.out.WriteString(export)
		if returned[export] != "" {
			j.out.WriteString(": " + returned[export])
		}
		j.out.WriteString(", ")
	}
	j.out.WriteString("};\n})();\n")
}
