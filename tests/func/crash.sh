# The server and its etcd are killed in the middle of writing, with every etcd there is here: what was acknowledged is there, with the
# same bytes, and watches that go on from their last revision see each change once. Then an etcd that stands still: requests
# end in time, and go on afterwards.
# shellcheck shell=bash source=tests/func/lib.sh
. "$(dirname "$0")/lib.sh"

# writing ROUND N: N objects by 16 writers, and two watches from the present revision, all in the background.
writing() {
    api GET "$SANDBOXES?limit=1"
    FIRST=$(q .metadata.resourceVersion)
    : >"$WORK/ledger" # else the one of the round before says at once that the moment has come
    load_behind watch watch -n 2 -r "$FIRST" -u "end-$1" -o "$WORK/events" -d 90
    WATCH_PID=$LOAD_PID
    load_behind create create -n "$2" -t 16 -p "$1" -s 1500 -l "$WORK/ledger" -d 60
    CREATE_PID=$LOAD_PID
}

# written N: are N answered? The moment comes by chance, but not before the writers are at it nor after they are through.
written() { [ "$(wc -l <"$WORK/ledger")" -ge "$1" ]; }

# check_written ROUND TEXT
check_written() {
    load_result create "$CREATE_PID" "$2: no answer to a writer is wrong"
    within 20 created "end-$1"
    load_result watch "$WATCH_PID" "$2: the watches see every event once, in order, and end with what the list says"
    t "$2: what was acknowledged is there with its bytes, the rest absent or whole" load verify -t 4 -p "$1" -s 1500 -l "$WORK/ledger"
    is "$2: the events are those that etcd remembers" "$(etcd_history $((FIRST + 1)) "$(tail -n 1 "$WORK/events" | cut -d' ' -f1)" | md5sum)" \
        "$(cut -d' ' -f1 "$WORK/events" | md5sum)"
}

created() {
    api POST "$SANDBOXES" "${JSON[@]}" -d "$(sandbox "$1")"
    [ "$CODE" = 201 ] || [ "$CODE" = 409 ]
}

kill_server() {
    local n=$WRITES text="$NAME, kill $1 of the server" at
    writing "$2" "$n"
    within 30 written $((n / 10 + RANDOM % (n / 3))) || not_ok "$text: the writers get on" "$(cat "$WORK/create.out")"
    server_kill
    at=$(wc -l <"$WORK/ledger")
    if [ "$at" -lt "$n" ]; then ok "$text: after $at of $n writes"; else not_ok "$text: comes in the middle" "all $n were through"; fi
    server_up "${FLAGS[@]}"
    check_written "$2" "$text"
}

# unknown TEXT PATH: a 5xx with a Status, never a 404 or an empty list.
unknown() {
    local text=$1
    shift
    api "$@"
    if [[ $CODE == 50[034] ]] && [ "$(q .kind)" = Status ] && [ "$(q .code)" = "$CODE" ]; then ok "$text: $CODE"; else not_ok "$text" "$CODE $BODY"; fi
}

kill_etcd() {
    local text="$NAME, kill of etcd" n=$WRITES
    created anchor
    writing etcd "$n"
    within 30 written $((n / 10 + RANDOM % (n / 3))) || not_ok "$text: the writers get on"
    etcd_kill
    unknown "$text: a list meanwhile" GET "$SANDBOXES?timeout=3s"
    unknown "$text: a get meanwhile" GET "$SANDBOXES/anchor?timeout=3s"
    unknown "$text: a get of what never was" GET "$SANDBOXES/never?timeout=3s"
    unknown "$text: a delete meanwhile" DELETE "$SANDBOXES/anchor?timeout=3s"
    answers "IL-157 $text: a get of any version is served from memory" 200 GET "$SANDBOXES/anchor?resourceVersion=0"
    answers "$text: livez stays" 200 GET /livez
    answers "$text: readyz goes" 500 GET /readyz
    etcd_up "$ETCD"
    t "$text: the server finds back by itself" within 15 is_ready
    check_written etcd "$text"
}

# timed FILE ARGUMENT...: one request in the background; CODE MILLISECONDS BODY go to the file.
timed() {
    local file=$1 path=$2
    shift 2
    curl -sS --max-time 60 -A func/1 --cacert "$WORK/serving-ca.crt" "${AS[@]}" -o "$file.body" -w '%{http_code} %{time_total}' \
        "$@" "$URL$path" >"$file" 2>&1 &
    PIDS+=($!)
    TIMED+=($!)
}

stop_etcd() {
    local text="$NAME, etcd stands still" i n=0 late=0 file code took begin
    TIMED=()
    created still
    load_behind watch watch -n 2 -r "$(q .metadata.resourceVersion)" -u end-still -d 90
    WATCH_PID=$LOAD_PID
    within 10 grep -q open "$WORK/watch.out"
    etcd_signal STOP
    for i in {1..20}; do
        timed "$WORK/read-$i" "$SANDBOXES?limit=1"
        timed "$WORK/write-$i" "$SANDBOXES" "${JSON[@]}" -d "$(sandbox "still-$i")"
    done
    sleep 1 # they come from processes of their own
    begin=$(now_ms)
    answers "$text: a get of any version is served while 40 requests wait" 200 GET "$SANDBOXES/still?resourceVersion=0"
    answers "$text: livez is served as well" 200 GET /livez
    at_most "$text: for both it took" 1500 $(($(now_ms) - begin)) ms
    wait "${TIMED[@]}"
    for i in {1..20}; do
        for file in "$WORK/read-$i" "$WORK/write-$i"; do
            read -r code took <"$file"
            [[ $code == 50[034] ]] && [ "$(jq -r .kind "$file.body")" = Status ] && n=$((n + 1))
            [ "${took%.*}" -lt $((${SLOW:+10} + 5)) ] || late=$((late + 1))
        done
    done
    is "$text: all requests end with a Status" 40 $n
    is "$text: within the deadline" 0 $late
    etcd_signal CONT
    t "$text: it goes on by itself" within 15 created end-still
    load_result watch "$WATCH_PID" "$text: the watches saw every event once"
}

# end_while_still: it ends with its grace, though requests wait for an etcd that stands still, and might for half a minute.
end_while_still() {
    local begin
    TIMED=()
    etcd_signal STOP
    timed "$WORK/write-late" "$SANDBOXES" "${JSON[@]}" -d "$(sandbox late)"
    sleep 1 # they come from processes of their own
    begin=$(now_ms)
    server_stop
    is "$NAME: a server ends while etcd stands still" 0 $?
    at_most "$NAME: after a grace of 2 s it took" 15000 $(($(now_ms) - begin)) ms
    etcd_signal CONT
    wait "${TIMED[@]}"
}

FLAGS=(--request-timeout=3) # seconds
WRITES=1500
[ -z "$SLOW" ] || WRITES=300
for PROGRAM in $(etcd_programs); do
    NAME="etcd $("$PROGRAM" --version | sed -n '1s/.*: //p')"
    ETCD_DIR=$WORK/etcd-$NAME PORT=''
    etcd_up "$PROGRAM"
    server_up "${FLAGS[@]}"
    kill_server 1 first
    kill_server 2 second
    kill_server 3 third
    kill_etcd
    stop_etcd
    server_stop
    is "$NAME: the server ends with exit code 0" 0 $?
    server_up --shutdown-grace=2
    end_while_still
    etcd_stop "$ETCD_DIR"
done
