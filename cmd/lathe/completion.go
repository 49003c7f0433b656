package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" help:"bash, zsh or fish." enum:"bash,zsh,fish"`
}

func (c *completionCmd) Run(e *env) error {
	var b strings.Builder
	root := e.parser.Model.Node
	switch c.Shell {
	case "bash":
		bashCompletion(&b, root)
	case "zsh":
		// zsh understands bash's form.
		b.WriteString("#compdef lathe\nautoload -U +X bashcompinit && bashcompinit\n")
		bashCompletion(&b, root)
	case "fish":
		fishCompletion(&b, root)
	}
	_, err := fmt.Fprint(e.stdout, b.String())
	return err
}

func commands(n *kong.Node) []*kong.Node {
	var out []*kong.Node
	for _, c := range n.Children {
		if c.Type == kong.CommandNode && !c.Hidden {
			out = append(out, c)
		}
	}
	return out
}

// flags are those of a command and of all commands.
func flags(n *kong.Node) []*kong.Flag {
	var out []*kong.Flag
	for _, group := range n.AllFlags(true) {
		out = append(out, group...)
	}
	return out
}

func choices(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	var out []string
	for _, s := range strings.Split(v.Enum, ",") {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

func bashCompletion(b *strings.Builder, root *kong.Node) {
	names := []string{}
	for _, c := range commands(root) {
		names = append(names, c.Name)
	}
	fmt.Fprintf(b, `_lathe() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words= cmd=
  local w; for w in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do case $w in -*) ;; *) cmd=$w; break ;; esac; done
  COMPREPLY=()
  if [ -z "$cmd" ]; then
    COMPREPLY=($(compgen -W "%s --help --version --json" -- "$cur")); return
  fi
  case $cmd in
`, strings.Join(names, " "))
	for _, c := range commands(root) {
		var fs []string
		fmt.Fprintf(b, "  %s)\n    case $prev in\n", c.Name)
		for _, f := range flags(c) {
			fs = append(fs, "--"+f.Name)
			if ch := choices(f.Value); ch != nil {
				fmt.Fprintf(b, "    --%s) COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")); return ;;\n", f.Name, strings.Join(ch, " "))
			}
		}
		b.WriteString("    esac\n")
		words := strings.Join(fs, " ")
		for _, p := range c.Positional {
			if ch := choices(p); ch != nil {
				words += " " + strings.Join(ch, " ")
			}
		}
		fmt.Fprintf(b, "    words=\"%s\" ;;\n", words)
	}
	b.WriteString(`  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur") $(compgen -f -- "$cur"))
}
complete -o filenames -F _lathe lathe
`)
}

func fishCompletion(b *strings.Builder, root *kong.Node) {
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `\'`) + "'" }
	for _, c := range commands(root) {
		fmt.Fprintf(b, "complete -c lathe -n __fish_use_subcommand -f -a %s -d %s\n", c.Name, quote(c.Help))
	}
	for _, c := range commands(root) {
		cond := quote("__fish_seen_subcommand_from " + c.Name)
		for _, f := range flags(c) {
			fmt.Fprintf(b, "complete -c lathe -n %s -l %s -d %s", cond, f.Name, quote(f.Help))
			if f.Short != 0 {
				fmt.Fprintf(b, " -s %c", f.Short)
			}
			if ch := choices(f.Value); ch != nil {
				fmt.Fprintf(b, " -x -a %s", quote(strings.Join(ch, " ")))
			} else if !f.IsBool() {
				b.WriteString(" -r")
			}
			b.WriteString("\n")
		}
		for _, p := range c.Positional {
			if ch := choices(p); ch != nil {
				fmt.Fprintf(b, "complete -c lathe -n %s -f -a %s\n", cond, quote(strings.Join(ch, " ")))
			}
		}
	}
}
