# A thousand watches, a tenth of which never read, while others write: each that reads sees every change once and in order, also when it
# resumes; those that do not read are cut off; memory stays within its bound. WATCHERS_SECONDS sets how long they write, 10 s otherwise;
# less does not fill what the silent ones have room for. What etcd stores is in memory: it is not the disk that is asked how late it is.
# shellcheck shell=bash source=tests/func/lib.sh
if [ -w /dev/shm ]; then export TMPDIR=/dev/shm; fi
. "$(dirname "$0")/lib.sh"
READERS=900 SILENT=100 WRITES=500 SECONDS_LONG=${WATCHERS_SECONDS:-10}
[ -z "$SLOW" ] || READERS=90 SILENT=0 WRITES=100 # so few writes would not fill what a silent one may leave unread
# cpu_ms PID: of processor that it took until now.
cpu_ms() { awk -v hz="$(getconf CLK_TCK)" '{ print int(($14 + $15) * 1000 / hz) }' "/proc/$1/stat"; }

etcd_up
server_up --idle-timeout=20
BEFORE=$(server_rss_kib)
CPU=$(cpu_ms "$SERVER_PID") ETCD_CPU=$(cpu_ms "$(cat "$ETCD_DIR/pid")")
MAX=$BEFORE
"${LOAD%/load}/watchers" -U "$PORT" -c "$WORK" -n "$READERS" -x "$SILENT" -w "$WRITES" -d "$SECONDS_LONG" >"$WORK/watchers.out" 2>&1 &
PIDS+=($!)
while kill -0 "${PIDS[-1]}" 2>/dev/null; do
    RSS=$(server_rss_kib)
    [ "$RSS" -le "$MAX" ] || MAX=$RSS
    sleep 0.2
done
load_result watchers "${PIDS[-1]}" "$READERS watches see every change once and in order, and $SILENT that never read are cut off"
CPU=$(($(cpu_ms "$SERVER_PID") - CPU)) ETCD_CPU=$(($(cpu_ms "$(cat "$ETCD_DIR/pid")") - ETCD_CPU))
DELIVERIES=$(awk '/^# deliveries: / { print $3 }' "$WORK/watchers.out")
echo "# processor time: server $CPU ms, $((CPU * 1000000 / ${DELIVERIES:-1})) ns a delivery, writes and all; etcd $ETCD_CPU ms"
echo "# memory: $((BEFORE / 1024)) MiB before, at most $((MAX / 1024)) MiB"
[ -n "$SLOW" ] || at_most "memory at its most" 400 $((MAX / 1024)) MiB
answers "the server goes on" 200 GET "$SANDBOXES?limit=1"
