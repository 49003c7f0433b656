// Command pt2gen writes the Go form of the archive's JSON schema, structures and decoder, from the facts file
// pt2/schema/schema.facts. With -from it renews the facts file from the description that a torch release ships.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"log"
	"os"
)

// head explains the notation; it is written at the top of a renewed facts file.
const head = `# What the JSON of a .pt2 archive holds, for tools/pt2gen.
#
#   version MAJOR.MINOR   the schema version described
#   struct NAME           an object with the fields that follow
#   union NAME            an object with exactly one of the fields that follow
#   enum NAME             an integer, one of the codes that follow
#
# A field is a name and a type: bool, int, float, str, a declared name, [T] a list, {T} a dictionary by name; a question
# mark where it may be absent or null.
`

// The declarations that the front end reads.
var roots = []string{"ExportedProgram", "PayloadConfig"}

func main() {
	log.SetFlags(0)
	log.SetPrefix("pt2gen: ")
	in := flag.String("facts", "schema.facts", "the facts file")
	out := flag.String("o", "zschema.go", "the Go file to write")
	from := flag.String("from", "", "renew the facts file from this schema.yaml of a torch release")
	flag.Parse()
	if *from != "" {
		if err := renew(*from, *in); err != nil {
			log.Fatal(err)
		}
	}
	f, err := os.Open(*in)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	fs, err := parseFacts(f)
	if err != nil {
		log.Fatalf("%s: %v", *in, err)
	}
	var buf bytes.Buffer
	if err := generate(fs).Render(&buf); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(*out, buf.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}

func renew(yaml, out string) error {
	y, err := os.Open(yaml)
	if err != nil {
		return err
	}
	defer y.Close()
	fs, err := fromYAML(y, roots...)
	if err != nil {
		return fmt.Errorf("%s: %w", yaml, err)
	}
	var buf bytes.Buffer
	buf.WriteString(head)
	if err := fs.write(&buf); err != nil {
		return err
	}
	return os.WriteFile(out, buf.Bytes(), 0o644)
}
