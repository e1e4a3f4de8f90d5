# h2spec, the conformance tests of HTTP/2, against a real server. Its program is built from tests/h2spec with Go, once, into
# build/tools; without Go or its modules there is nothing to run. Each of its cases is a test here.
. "$(dirname "$0")/lib.sh"
H2SPEC=$ROOT/build/tools/h2spec

build() {
    [ -x "$H2SPEC" ] && return
    command -v go >/dev/null || { WHY='no Go here' && return 1; }
    mkdir -p "$(dirname "$H2SPEC")"
    (cd "$ROOT/tests/h2spec" && GOFLAGS='' GOWORK=off timeout 300 go build -trimpath -buildvcs=false -o "$H2SPEC.$$" \
        github.com/summerwind/h2spec/cmd/h2spec) >"$WORK/build" 2>&1 && mv "$H2SPEC.$$" "$H2SPEC" && return
    WHY="not built: $(tail -n 1 "$WORK/build")"
    return 1
}

# Where we differ on purpose. It tests RFC 7540; RFC 9113 has no dependencies between streams any more. libnghttp2 forgets closed
# streams, or a thousand of them would be kept for each connection, and leaves what comes for them unread, as it must anyway for what
# was under way when it closed them. Who sends more after the end of a request may find it answered, and its stream closed, before.
DIFFERENT='http2/5.3.1: Sends PRIORITY frame that depend on itself
http2/5.1: closed: Sends a DATA frame after sending RST_STREAM frame
http2/5.1: closed: Sends a HEADERS frame after sending RST_STREAM frame
http2/5.1: closed: Sends a DATA frame
http2/5.1: closed: Sends a HEADERS frame
http2/5.1: half closed (remote): Sends a DATA frame
http2/5.1: half closed (remote): Sends a HEADERS frame
http2/5.1.1: Sends stream identifier that is numerically smaller than previous'

# cases REPORT: from its JUnit form a line a case: passed|failed|skipped, its section and title.
cases() {
    python3 - "$1" <<'PY'
import sys, xml.etree.ElementTree as tree
for case in tree.parse(sys.argv[1]).iter("testcase"):
    end = next((c.tag for c in case if c.tag in ("failure", "error", "skipped")), "")
    print({"": "passed", "skipped": "skipped"}.get(end, "failed"), "%s: %s" % (case.get("package"), case.get("classname")))
PY
}

build || { skip "h2spec" "$WHY" && exit 0; }
need python3
etcd_up
server_up
timeout 300 "$H2SPEC" --tls --insecure --strict --host 127.0.0.1 --port "$PORT" --path /livez --timeout "${SLOW:+1}2" \
    --junit-report "$WORK/report.xml" >"$WORK/h2spec" 2>&1
is "h2spec runs" 0 "$([ -s "$WORK/report.xml" ]; echo $?)"
cases "$WORK/report.xml" >"$WORK/cases"
while read -r end text; do
    case $end in
    passed) ok "$text" ;;
    skipped) echo "# not run: $text" ;;
    failed)
        if grep -qxF -- "$text" <<<"$DIFFERENT"; then ok "$text (different on purpose)"; else not_ok "$text" "$(grep -A8 -F -- "${text#*: }" "$WORK/h2spec" | tail -n 9)"; fi
        ;;
    esac
done <"$WORK/cases"
api GET /livez
is "the server is well" "200 ok" "$CODE $BODY"
