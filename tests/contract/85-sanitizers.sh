# The same once more on a server that watches its own memory.
. "$(dirname "$0")/lib.sh"
ROADS=direct

check_217() { # a server with the sanitizers in it has nothing to report
    local sanitized=$ROOT/build/gcc-address-undefined/sandbox-apiserver file
    if ! "$sanitized" --version >/dev/null 2>&1; then
        skip "no build with sanitizers: make SAN=address,undefined WERROR=1 all"
        return
    fi
    # The other files once more, along the road of this process.
    : >"$WORK/own.log"
    SERVER=$sanitized own_up || return
    local files=({40-create,50-update,60-delete,70-list,81-table,82-patch,83-modes})
    printf '%s\n' "${files[@]}" | CONTRACT_ONLY='' CONTRACT_OWN="${URL[own]} ${CA[own]}" xargs -P 2 -I % sh -c "bash '$HERE/%.sh' >'$WORK/%.tap' 2>&1"
    for file in "${files[@]}"; do
        is "" "$(grep -A3 '^not ok' "$WORK/$file.tap" | head -n 8)"
    done
    own_down
    is 0 $?
    below "$(cat "$WORK"/*.tap | grep '^ok ' | grep -vc '# skip')" 80
    is "" "$(grep -E 'ERROR: (Address|Leak)Sanitizer|runtime error:' "$WORK/own.log" | head -n 3)"
}

run_checks
