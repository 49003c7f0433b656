package lathe

import "runtime/debug"

// Version is the module's version, and the commit it was built from where the build knows that.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" {
		v = "(devel)"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && v == "(devel)" {
			v += " " + s.Value[:min(12, len(s.Value))]
		}
	}
	return v
}
