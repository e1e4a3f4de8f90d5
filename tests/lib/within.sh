# Waiting for something to become true, in shell tests. Sourced, not run.
# shellcheck shell=bash

# rest SINCE-US: twice as long as has passed since then: whoever asks again and again must not keep busy what it waits for.
rest() {
    local us=$((2 * (${EPOCHREALTIME//[!0-9]/} - $1)))
    [ $us -ge 20000 ] || us=20000
    [ $us -le 1000000 ] || us=1000000
    sleep ${us}e-6
}

# within SECONDS COMMAND...: tries until it succeeds. Seconds are those of a machine with nothing else to do: where a try takes long, so does
# what is waited for, and there are as many tries all the same. LAST_TRY: a file for what the command says; what it said last is printed when
# time is up.
within() {
    local end=$((SECONDS + $1)) tries=$(($1 * 10)) said=${LAST_TRY:-/dev/null} began
    shift
    while began=${EPOCHREALTIME//[!0-9]/} && ! "$@" >"$said" 2>&1; do
        tries=$((tries - 1))
        [ $SECONDS -le $end ] || [ $tries -gt 0 ] || { cat "$said" && return 1; }
        rest "$began"
    done
}
