package dashboard

import (
	"embed"
	"io/fs"
)

//go:embed web
var web embed.FS

// Files has what the page is made of.
func Files() fs.FS {
	files, err := fs.Sub(web, "web")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return files
}
