// The cells for Go's clients. Called as: PROGRAM franz|sarama BOOTSTRAP FLAKY PREFIX CELL...; FLAKY is the same broker
// behind a proxy that loses answers. Prints one line per cell.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	records  = 600
	deadline = 300 * time.Second
	begin    = int64(1_700_000_000_000)
)

// client is what a library must be able to do.
type client interface {
	compression(bootstrap, topic, codec string)
	idempotent(bootstrap, topic string)
	group(bootstrap, topic string) string
	admin(bootstrap, topic string)
	seekByTime(bootstrap, topic string)
}

func main() {
	var library client = franz{}
	if os.Args[1] == "sarama" {
		library = saramaClient{}
	}
	bootstrap, flaky, prefix := os.Args[2], os.Args[3], os.Args[4]
	for _, cell := range os.Args[5:] {
		fmt.Println(cell, run(library, cell, bootstrap, flaky, prefix+"-"+cell))
	}
}

func run(library client, cell, bootstrap, flaky, topic string) (said string) {
	defer func() {
		if problem := recover(); problem != nil {
			said = "fail " + strings.ReplaceAll(fmt.Sprint(problem), "\n", " ")
		}
	}()
	switch cell {
	case "idempotent":
		library.idempotent(flaky, topic)
		return fmt.Sprintf("pass %d records, each once though answers were lost", records)
	case "group":
		return "pass " + library.group(bootstrap, topic)
	case "admin":
		library.admin(bootstrap, topic)
		return "pass create, list, describe, grow, alter config, delete"
	case "time":
		library.seekByTime(bootstrap, topic)
		return "pass offsets of five times, and a read from there"
	default:
		library.compression(bootstrap, topic, cell)
		return fmt.Sprintf("pass %d records", records)
	}
}

// try stops the cell at an error.
func try(err error) {
	if err != nil {
		panic(err)
	}
}

func check(holds bool, format string, values ...any) {
	if !holds {
		panic(fmt.Sprintf(format, values...))
	}
}

func until(what string, condition func() bool) {
	for end := time.Now().Add(deadline); !condition(); time.Sleep(10 * time.Millisecond) {
		check(time.Now().Before(end), "timed out: %s", what)
	}
}

func payload(number int) []byte {
	return []byte(strings.Repeat(fmt.Sprintf("value %05d ", number), 8))
}

// reading checks what is read: each record once, in order, with all its parts.
type reading struct {
	numbers map[int]bool
	last    map[int32][2]int
}

func newReading() *reading { return &reading{map[int]bool{}, map[int32][2]int{}} }

func (r *reading) see(partition int32, offset int64, key, value, header []byte) {
	number, err := strconv.Atoi(string(key))
	try(err)
	check(string(value) == string(payload(number)), "value of %d is %q", number, value)
	check(string(header) == fmt.Sprintf("h%d", number), "header of %d is %q", number, header)
	before, known := r.last[partition]
	if !known {
		before = [2]int{-1, -1}
	}
	check(int(offset) == before[0]+1 && number > before[1], "order at %d:%d", partition, offset)
	r.last[partition] = [2]int{int(offset), number}
	check(!r.numbers[number], "%d is there twice", number)
	r.numbers[number] = true
}

// processed are the records whose offset was committed, as often as they were.
type processed struct {
	lock sync.Mutex
	seen map[string]int
	all  int
}

func newProcessed() *processed { return &processed{seen: map[string]int{}} }

func (p *processed) add(partition int32, offset int64) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.seen[fmt.Sprintf("%d:%d", partition, offset)]++
	p.all++
}

func (p *processed) count() int {
	p.lock.Lock()
	defer p.lock.Unlock()
	return len(p.seen)
}

func (p *processed) verify(count int, committed int64) string {
	check(len(p.seen) == count, "%d of %d records were processed", len(p.seen), count)
	check(p.all == count, "%d records were processed twice", p.all-count)
	check(committed == int64(count), "committed %d of %d", committed, count)
	return fmt.Sprintf("%d records, each processed once by committed offsets, 3 members", count)
}
