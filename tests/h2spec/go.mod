module agent-sandbox/tests/h2spec

go 1.25.0

require github.com/summerwind/h2spec v2.2.1+incompatible

require golang.org/x/net v0.17.0 // indirect

require (
	github.com/fatih/color v1.13.0 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/spf13/cobra v1.5.0 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
	golang.org/x/sys v0.42.0 // indirect
	golang.org/x/text v0.13.0 // indirect
)
