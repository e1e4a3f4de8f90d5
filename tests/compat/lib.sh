# What the tests with other people's clients share: all of tests/e2e/lib.sh, and how the outcome of a program in another language
# becomes TAP. Sourced, not run; each can be run alone as those of tests/e2e, after `tests/compat/clients make`.
# shellcheck shell=bash disable=SC2034
COMPAT=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CLIENTS=$COMPAT/clients
# shellcheck source=tests/e2e/lib.sh
. "$COMPAT/../e2e/lib.sh"

# k ARGUMENT...: kubectl in the test's namespace, errors too.
k() { kubectl -n "$NS" "$@" 2>&1; }

# relay COMMAND...: a program that prints lines `ok TEXT` and `not ok TEXT`, and above a failure its reasons as comments.
relay() {
    local line end=''
    while IFS= read -r line; do
        case $line in
        "ok "*) ok "${line#ok }" ;;
        "not ok "*) not_ok "${line#not ok }" ;;
        "ended "*) end=$line ;;
        *) printf '# %s\n' "$line" | cut -c1-600 ;;
        esac
    done < <("$@" 2>&1; echo "ended $?")
    is "${2##*/} came to its end" "ended 0" "$end"
}
