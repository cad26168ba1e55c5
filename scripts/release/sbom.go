package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/xeipuuv/gojsonschema"
)

// sbom writes what is in a program, by what the go command has noted in it.
func (r *release) sbom(b build) error {
	info, err := buildinfo.Read(bytes.NewReader(b.data))
	if err != nil {
		return err
	}
	if info.Main.Version != r.version {
		return fmt.Errorf("%s: the program has the version %s, and not %s", b, info.Main.Version, r.version)
	}
	licences, err := readThirdParty(r.clone())
	if err != nil {
		return err
	}
	bom := cdx.NewBOM()
	sum := sha256.Sum256(b.data)
	bom.SerialNumber = "urn:uuid:" + uuid(sum)
	main := component(&info.Main, "Apache-2.0")
	main.Type, main.Name, main.Hashes = cdx.ComponentTypeApplication, b.program(), &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
	bom.Metadata = &cdx.Metadata{Timestamp: r.time.Format(time.RFC3339), Component: &main}
	std := component(&debug.Module{Path: "std", Version: info.GoVersion}, "BSD-3-Clause")
	all, below := []cdx.Component{std}, []string{std.BOMRef}
	for _, dep := range info.Deps {
		licence := "Apache-2.0"
		if !isOurs(dep.Path) {
			if licence = licences[dep.Path+" "+dep.Version]; licence == "" {
				return fmt.Errorf("%s: %s lacks %s %s: write it anew with make third-party", b, thirdParty[0], dep.Path, dep.Version)
			}
		}
		c := component(dep, licence)
		all, below = append(all, c), append(below, c.BOMRef)
	}
	bom.Components = &all
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &below}}
	var text bytes.Buffer
	if err := cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return err
	}
	if err := validSBOM(text.Bytes()); err != nil {
		return fmt.Errorf("%s: %w", b, err)
	}
	return os.WriteFile(filepath.Join(r.files, "holdfast_"+r.bare()+"_"+b.String()+".cdx.json"), text.Bytes(), 0o644) //nolint:gosec // to be read by everybody
}

// uuid makes a random-looking UUID (version 8) of a sum.
func uuid(sum [sha256.Size]byte) string {
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// component returns a module. Its hash is the go command's, of the module's files.
func component(m *debug.Module, licence string) cdx.Component {
	c := cdx.Component{
		Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version,
		PackageURL: "pkg:golang/" + m.Path + "@" + m.Version,
		Licenses:   &cdx.Licenses{{License: &cdx.License{ID: licence}}},
	}
	if strings.Contains(licence, " ") {
		c.Licenses = &cdx.Licenses{{Expression: licence}}
	}
	c.BOMRef = c.PackageURL
	if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(sum) == sha256.Size {
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	}
	return c
}

// validSBOM checks a text with the schema of CycloneDX, which comes with its library.
func validSBOM(text []byte) error {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		return err
	}
	load := func(name string) gojsonschema.JSONLoader {
		return gojsonschema.NewReferenceLoader("file://" + filepath.Join(strings.TrimSpace(string(out)), "schema", name))
	}
	schemas := gojsonschema.NewSchemaLoader()
	if err := schemas.AddSchemas(load("spdx.schema.json"), load("jsf-0.82.schemax.json")); err != nil {
		return err
	}
	schema, err := schemas.Compile(load("bom-1.6.schema.json"))
	if err != nil {
		return err
	}
	result, err := schema.Validate(gojsonschema.NewBytesLoader(text))
	if err != nil || result.Valid() {
		return err
	}
	problems := []error{errors.New("the SBOM is not one")}
	for _, problem := range result.Errors() {
		problems = append(problems, errors.New(problem.String()))
	}
	return errors.Join(problems...)
}
