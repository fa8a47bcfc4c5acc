#!/bin/sh
# kcat (librdkafka 2.0 on Debian 12). Called as: BOOTSTRAP FLAKY PREFIX CELL...; the topics are there already: kcat makes
# none. $KCAT is the program. Prints one line per cell.
bootstrap=$1 flaky=$2 prefix=$3
shift 3
scratch=$(mktemp -d) || exit 1
trap 'rm -rf -- "$scratch"' EXIT
records=600

lines() { # FROM UPTO
  n=$1
  while [ "$n" -lt "$2" ]; do echo "$n:value $n"; n=$((n + 1)); done
}

write() { # BROKER TOPIC FROM UPTO SETTING...
  broker=$1 topic=$2 from=$3 upto=$4
  shift 4
  lines "$from" "$upto" | "$KCAT" -q -E -b "$broker" -P -t "$topic" -K: -X linger.ms=2 "$@"
}

same() { # FILE COUNT: each record once
  lines 0 "$2" | sort >"$scratch/expected"
  sort "$1" | cmp -s - "$scratch/expected"
}

compression() {
  write "$bootstrap" "$topic" 0 $records -z "$cell" -X enable.idempotence=false &&
    "$KCAT" -q -b "$bootstrap" -C -t "$topic" -o beginning -e -f '%k:%s\n' >"$scratch/read" &&
    same "$scratch/read" $records && echo "pass $records records"
}

idempotent() {
  write "$flaky" "$topic" 0 $records -X enable.idempotence=true -X batch.num.messages=20 -X retry.backoff.ms=50 \
    -X reconnect.backoff.ms=20 -X reconnect.backoff.max.ms=100 &&
    "$KCAT" -q -b "$bootstrap" -C -t "$topic" -o beginning -e -f '%k:%s\n' >"$scratch/read" &&
    same "$scratch/read" $records && echo "pass $records records, each once though answers were lost"
}

member() { # NUMBER
  "$KCAT" -q -u -b "$bootstrap" -G "$topic" -X auto.offset.reset=earliest -X session.timeout.ms=45000 \
    -X heartbeat.interval.ms=500 -X auto.commit.interval.ms=100 -f '%k:%s\n' "$topic" >"$scratch/member$1" 2>/dev/null &
}

reach() { # COUNT: waits until so many different records are read
  tries=0
  while [ "$(cat "$scratch"/member* | sort -u | wc -l)" -lt "$1" ]; do
    tries=$((tries + 1))
    [ $tries -lt 3000 ] || return 1
    sleep 0.1
  done
}

group() {
  member 1; first=$!
  write "$bootstrap" "$topic" 0 200 && reach 200 || return 1
  member 2; second=$!
  write "$bootstrap" "$topic" 200 400 && reach 400 || return 1
  kill "$first"; wait "$first"
  write "$bootstrap" "$topic" 400 600 && reach 600 || return 1
  kill "$second"; wait "$second"
  # Whoever comes now finds everything committed.
  "$KCAT" -q -b "$bootstrap" -G "$topic" -e -X auto.offset.reset=earliest -f '%k:%s\n' "$topic" >"$scratch/late" 2>/dev/null
  cat "$scratch"/member* | sort -u >"$scratch/read"
  same "$scratch/read" 600 && [ ! -s "$scratch/late" ] && echo "pass 600 records, none lost, all committed, 3 members"
}

seek_by_time() {
  write "$bootstrap" "$topic" 0 50 || return 1
  sleep 0.2; between=$(date +%s%3N); sleep 0.2
  write "$bootstrap" "$topic" 50 100 || return 1
  "$KCAT" -q -b "$bootstrap" -C -t "$topic" -o "s@$between" -e -f '%k:%s\n' >"$scratch/read" &&
    lines 50 100 | cmp -s - "$scratch/read" && echo "pass a read from a time to the end"
}

for cell; do
  topic=$prefix-$cell
  case $cell in
    idempotent) said=$(idempotent) ;;
    group) said=$(group) ;;
    admin) said="cannot kcat lists topics (-L) but has no admin commands" ;;
    time) said=$(seek_by_time) ;;
    *) said=$(compression) ;;
  esac
  echo "$cell ${said:-fail see the lines above}"
done
