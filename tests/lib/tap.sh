# The words in which shell tests say what they found: TAP, numbered by NUMBER, failures counted by BAD. Sourced, not run.
# shellcheck shell=bash disable=SC2034
NUMBER=0 BAD=0

# ABOUT, when a test sets it, comes before each text.
ok() { NUMBER=$((NUMBER + 1)) && echo "ok $NUMBER - ${ABOUT:-}$1"; }

# not_ok TEXT [DETAIL]: the detail goes below as comments, without what is too long to read.
not_ok() {
    NUMBER=$((NUMBER + 1)) BAD=$((BAD + 1))
    echo "not ok $NUMBER - ${ABOUT:-}$1"
    [ -z "${2:-}" ] || printf '%s\n' "$2" | head -n 25 | cut -c1-1000 | sed 's/^/#   /'
}

skip() { NUMBER=$((NUMBER + 1)) && echo "ok $NUMBER - $1 # skip $2"; }

# is TEXT EXPECTED ACTUAL
is() { if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "expected: $2"$'\n'"got:      $3"; fi; }

# isnt TEXT UNEXPECTED ACTUAL
isnt() { if [ "$2" != "$3" ]; then ok "$1"; else not_ok "$1" "got: $3"; fi; }

# like TEXT EXTENDED-REGULAR-EXPRESSION ACTUAL: some line matches.
like() { if grep -qE -- "$2" <<<"$3"; then ok "$1"; else not_ok "$1" "nothing matches: $2"$'\n'"$3"; fi; }

# has TEXT WORDS ACTUAL: the words stand in it literally.
has() { if [[ $3 == *"$2"* ]]; then ok "$1"; else not_ok "$1" "not found: $2"$'\n'"$3"; fi; }

# t TEXT COMMAND...: the command succeeds; its `# ` lines are passed on.
t() {
    local text=$1 out rc=0
    shift
    out=$("$@" 2>&1) || rc=$?
    printf '%s\n' "$out" | grep '^# ' || :
    if [ "$rc" = 0 ]; then ok "$text"; else not_ok "$text" "exit code $rc of: $*"$'\n'"$out"; fi
}
