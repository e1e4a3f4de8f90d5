// Package tap prints what tests/compat/lib.sh relays: `ok TEXT`, or above `not ok TEXT` the reasons for it.
package tap

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

var mu sync.Mutex

// Check reports one test. Reasons are shown when it failed.
func Check(text string, good bool, reasons ...any) {
	mu.Lock()
	defer mu.Unlock()
	if good {
		fmt.Println("ok", text)
		return
	}
	for _, reason := range reasons {
		fmt.Printf("%v\n", reason)
	}
	fmt.Println("not ok", text)
}

// Same reports whether got is what was wanted.
func Same[T comparable](text string, want, got T) {
	Check(text, want == got, fmt.Sprintf("expected: %v", want), fmt.Sprintf("got:      %v", got))
}

// Note prints a remark.
func Note(format string, values ...any) {
	mu.Lock()
	defer mu.Unlock()
	fmt.Printf(format+"\n", values...)
}

// Must ends the program when there is an error: without what failed nothing more can be tested.
func Must(err error, what string) {
	if err != nil {
		Check(what, false, err)
		os.Exit(1)
	}
}

// Do runs a command of bash, which may be a function of the file BASH_ENV.
func Do(command string) {
	out, err := exec.Command("bash", "-c", command).CombinedOutput()
	Check(command, err == nil, err, string(out))
}

// Within waits for something to become true.
func Within(limit time.Duration, is func() bool) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if is() {
			return true
		}
	}
	return is()
}
