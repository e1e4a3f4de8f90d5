# Ending what a shell test has in the background. Sourced, not run.
# shellcheck shell=bash

# end_children SIGNAL PID...: those of them that run, as children of this shell. The number of one that has ended may be another's by now:
# there are few numbers, and many tests side by side.
end_children() {
    local signal=$1 running pid
    shift
    running=" $(jobs -pr | tr '\n' ' ')"
    for pid; do [[ $running != *" $pid "* ]] || kill -"$signal" "$pid" 2>/dev/null; done
}
