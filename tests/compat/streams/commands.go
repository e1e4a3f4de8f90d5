package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/url"
	"strings"
	"sync"

	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"

	"agent-sandbox.dev/compat/tap"
)

// executor is a way to run commands.
type executor struct {
	name string
	make func(p *pod, u *url.URL) (remotecommand.Executor, error)
}

var executors = []executor{
	{"SPDY", func(p *pod, u *url.URL) (remotecommand.Executor, error) {
		return remotecommand.NewSPDYExecutor(p.config, "POST", u)
	}},
	{"WebSocket", func(p *pod, u *url.URL) (remotecommand.Executor, error) {
		return remotecommand.NewWebSocketExecutor(p.config, "GET", u.String())
	}},
}

// older is SPDY with a version of the streams that knows no exit codes and no sizes of terminals.
func older(version string) executor {
	return executor{"SPDY, " + version, func(p *pod, u *url.URL) (remotecommand.Executor, error) {
		transport, upgrader, err := spdy.RoundTripperFor(p.config)
		if err != nil {
			return nil, err
		}
		return remotecommand.NewSPDYExecutorForProtocols(transport, upgrader, "POST", u, version)
	}}
}

// run runs a script; what is nil in options is not asked for.
func (p *pod) run(ctx context.Context, way executor, options remotecommand.StreamOptions, script string) error {
	query := url.Values{"command": {"sh", "-c", script}}
	for name, wanted := range map[string]bool{"stdin": options.Stdin != nil, "stdout": options.Stdout != nil, "stderr": options.Stderr != nil, "tty": options.Tty} {
		if wanted {
			query.Set(name, "true")
		}
	}
	e, err := way.make(p, p.url("exec", query))
	if err != nil {
		return err
	}
	return e.StreamWithContext(ctx, options)
}

func noise(seed int64, size int) []byte {
	b := make([]byte, size)
	rand.New(rand.NewSource(seed)).Read(b)
	return b
}

func digest(b []byte) string { return fmt.Sprintf("%d bytes, %x", len(b), sha256.Sum256(b)) }

func commands(ctx context.Context, p *pod, way executor) {
	const size = 3 << 20
	var out, errs bytes.Buffer
	in := noise(1, size)
	err := p.run(ctx, way, remotecommand.StreamOptions{Stdin: bytes.NewReader(in), Stdout: &out, Stderr: &errs}, "cat; echo no more >&2")
	tap.Check(way.name+": exec ends well", err == nil, err)
	tap.Same(way.name+": what goes in comes out, byte by byte, until its end", digest(in), digest(out.Bytes()))
	tap.Same(way.name+": what goes wrong comes beside it", "no more\n", errs.String())

	out.Reset()
	err = p.run(ctx, way, remotecommand.StreamOptions{Stdout: &out}, fmt.Sprintf("head -c %d /dev/zero; exit 7", size))
	var code exec.CodeExitError
	tap.Check(way.name+": the exit code is the command's", errors.As(err, &code) && code.Code == 7, err)
	tap.Same(way.name+": all that was said before is there", digest(make([]byte, size)), digest(out.Bytes()))

	err = p.run(ctx, way, remotecommand.StreamOptions{Stdin: strings.NewReader(""), Stdout: io.Discard}, "cat")
	tap.Check(way.name+": nothing in, nothing out", err == nil, err)
	terminal(ctx, p, way)
	many(ctx, p, way)
}

// old clients are answered in words alone, and told of failures alone.
func old(ctx context.Context, p *pod, way executor) {
	ctx, cancel := context.WithTimeout(ctx, far)
	defer cancel()
	var out bytes.Buffer
	err := p.run(ctx, way, remotecommand.StreamOptions{Stdout: &out, Tty: true}, "tty")
	tap.Check(way.name+": a terminal without sizes", err == nil && strings.Contains(out.String(), "/dev/"), err, out.String())
	err = p.run(ctx, way, remotecommand.StreamOptions{Stdout: &out}, "exit 7")
	tap.Check(way.name+": a failure in words", err != nil && strings.Contains(err.Error(), "exit code"), err)
}

// sizes are those of a terminal, as its user makes them.
type sizes chan remotecommand.TerminalSize

func (s sizes) Next() *remotecommand.TerminalSize {
	size, more := <-s
	if !more {
		return nil
	}
	return &size
}

// waiter keeps what was written, and closes found when it has the text.
type waiter struct {
	mu    sync.Mutex
	all   bytes.Buffer
	text  string
	found chan struct{}
}

func (w *waiter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := strings.Contains(w.all.String(), w.text)
	w.all.Write(b)
	if !before && strings.Contains(w.all.String(), w.text) {
		close(w.found)
	}
	return len(b), nil
}

func (w *waiter) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}

func terminal(ctx context.Context, p *pod, way executor) {
	ctx, cancel := context.WithTimeout(ctx, far)
	defer cancel()
	script := `until [ "$(stty size)" = "24 80" ]; do sleep 0.1; done; echo small; until [ "$(stty size)" = "40 132" ]; do sleep 0.1; done; read line; echo "read $line"; tty`
	queue := make(sizes, 2)
	queue <- remotecommand.TerminalSize{Width: 80, Height: 24}
	in, typing := io.Pipe()
	out := &waiter{text: "small\r\n", found: make(chan struct{})}
	go func() {
		select {
		case <-out.found:
		case <-ctx.Done():
		}
		queue <- remotecommand.TerminalSize{Width: 132, Height: 40}
		fmt.Fprint(typing, "words\n")
	}()
	err := p.run(ctx, way, remotecommand.StreamOptions{Stdin: in, Stdout: out, Tty: true, TerminalSizeQueue: queue}, script)
	typing.Close()
	close(queue)
	said := out.String()
	tap.Check(way.name+": a terminal has the size it is given, and lines are read from it", err == nil && strings.Contains(said, "read words\r\n") && strings.Contains(said, "/dev/"), err, said)
}

// many runs as many commands as it can at once.
func many(ctx context.Context, p *pod, way executor) {
	const commands, size = 8, 200_000
	var wait sync.WaitGroup
	failures := make(chan string, commands)
	for i := range commands {
		wait.Go(func() {
			var out bytes.Buffer
			in := noise(int64(i), size)
			if err := p.run(ctx, way, remotecommand.StreamOptions{Stdin: bytes.NewReader(in), Stdout: &out}, "cat"); err != nil {
				failures <- err.Error()
			} else if !bytes.Equal(in, out.Bytes()) {
				failures <- "expected " + digest(in) + ", got " + digest(out.Bytes())
			}
		})
	}
	wait.Wait()
	close(failures)
	var reasons []any
	for failure := range failures {
		reasons = append(reasons, failure)
	}
	tap.Check(fmt.Sprintf("%s: %d commands at once do not touch each other", way.name, commands), len(reasons) == 0, reasons...)
}
