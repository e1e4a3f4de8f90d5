# How the outcome of a program in another language becomes TAP. Sourced, not run, where ok, not_ok and is are.
# shellcheck shell=bash

# relay COMMAND...: a program that prints lines `ok TEXT` and `not ok TEXT`, and above a failure its reasons as comments. The second word
# names it.
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
