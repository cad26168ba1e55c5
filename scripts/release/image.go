package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	imageUser = 65532
	imageHome = "home/nonroot/"
	authors   = "etc/ssl/certs/ca-certificates.crt"
)

// imageConfig is what a container of the image does unless its caller says otherwise.
// packaging/Dockerfile has the same.
var imageConfig = v1.Config{
	User:       "65532:65532",
	Env:        []string{"PATH=/usr/bin", "HOME=/home/nonroot"},
	WorkingDir: "/home/nonroot",
	Entrypoint: []string{"/usr/bin/holdfast"},
	Healthcheck: &v1.HealthConfig{
		Test:     []string{"CMD", "/usr/bin/holdfast", "doctor"},
		Interval: 30 * time.Second, Timeout: 20 * time.Second, StartPeriod: 10 * time.Second,
	},
}

// image writes an OCI layout with an index of the images for Linux.
func (r *release) image(builds []build) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range builds {
		if b.os != "linux" {
			continue
		}
		img, err := r.imageOf(b)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        img,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: b.os, Architecture: b.arch}},
		})
	}
	dir := filepath.Join(r.work, "image")
	to, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := to.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.bare()})); err != nil {
		return err
	}
	files, err := readAll(dir)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(r.files, "holdfast_"+r.bare()+"_oci.tar"), func(w io.Writer) error { return writeTar(w, files, r.time) })
}

// imageOf returns the image for one processor: one layer.
func (r *release) imageOf(b build) (v1.Image, error) {
	certificates, err := certificateAuthorities()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := writeTar(&text, []file{
		{name: authors, data: certificates},
		{name: "etc/group", data: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{name: "etc/passwd", data: []byte("root:x:0:0:root:/:/usr/bin/holdfast\nnonroot:x:65532:65532:nonroot:/home/nonroot:/usr/bin/holdfast\n")},
		{name: imageHome, mode: 0o700},
		{name: "tmp/", mode: 0o1777},
		{"usr/bin/holdfast", 0o755, b.data},
	}, r.time); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text.Bytes())), nil },
		tarball.WithCompressionLevel(6), tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	img, err := mutate.Append(empty.Image, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "scripts/release.sh"},
	})
	if err != nil {
		return nil, err
	}
	config := imageConfig
	config.Labels = map[string]string{
		"org.opencontainers.image.title":    "holdfast",
		"org.opencontainers.image.version":  r.bare(),
		"org.opencontainers.image.revision": r.commit,
		"org.opencontainers.image.created":  r.time.Format(time.RFC3339),
		"org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.source":   "https://" + ours,
	}
	whole, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	whole = whole.DeepCopy()
	whole.OS, whole.Architecture, whole.Created, whole.Config = b.os, b.arch, v1.Time{Time: r.time}, config
	if img, err = mutate.ConfigFile(img, whole); err != nil {
		return nil, err
	}
	return mutate.ConfigMediaType(mutate.MediaType(img, types.OCIManifestSchema1), types.OCIConfigJSON), nil
}

// certificateAuthorities returns those that Mozilla trusts, in the version that go.mod
// names. Those that it trusts in part only are left out: a file cannot say which part.
func certificateAuthorities() ([]byte, error) {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	if n := strings.Count(b.String(), "BEGIN"); n < 50 {
		return nil, fmt.Errorf("%d certificate authorities", n)
	}
	return b.Bytes(), nil
}

// readAll returns the files below a directory, sorted.
func readAll(dir string) (all []file, err error) {
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		name, err = filepath.Rel(dir, name)
		all = append(all, file{name: filepath.ToSlash(name), data: data})
		return err
	})
	return all, err
}
