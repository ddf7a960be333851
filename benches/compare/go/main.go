// go-zookeeper, measured like the others: see benches/src/task.rs for the command line and report.rs for the output.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"
)

const lockPath = "/bench-lock"

type task struct {
	workload, server  string
	authority         string
	inFlight, payload int
	children          int
	seconds, warmUp   float64
	operations        int64
	unawaited         bool
}

type silent struct{}

func (silent) Printf(string, ...interface{}) {}

func parse() task {
	t := task{workload: os.Args[1], inFlight: 1, payload: 128, seconds: 3, warmUp: 1}
	for i := 2; i < len(os.Args); i++ {
		name := strings.TrimPrefix(os.Args[i], "--")
		if name == "unawaited" {
			t.unawaited = true
			continue
		}
		i++
		value := os.Args[i]
		number, _ := strconv.ParseFloat(value, 64)
		switch name {
		case "server":
			t.server = value
		case "tls":
			t.authority = value
		case "in-flight":
			t.inFlight = int(number)
		case "payload":
			t.payload = int(number)
		case "children":
			t.children = int(number)
		case "seconds":
			t.seconds = number
		case "warm-up":
			t.warmUp = number
		case "operations":
			t.operations = int64(number)
		}
	}
	return t
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// connect waits for the session.
func connect(t task) *zk.Conn {
	dial := net.DialTimeout
	if t.authority != "" {
		dial = secured(t.authority)
	}
	conn, events, err := zk.Connect([]string{t.server}, 10*time.Second, zk.WithLogger(silent{}), zk.WithDialer(dial))
	check(err)
	for event := range events {
		if event.State == zk.StateHasSession {
			break
		}
	}
	return conn
}

// secured dials servers whose certificate is of the authority in this file.
func secured(authority string) zk.Dialer {
	pem, err := os.ReadFile(authority)
	check(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, network, address, &tls.Config{RootCAs: roots})
	}
}

func processor() float64 {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}

func status(key string) int64 {
	text, err := os.ReadFile("/proc/self/status")
	check(err)
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, key) {
			kib, _ := strconv.ParseInt(strings.Fields(line)[1], 10, 64)
			return kib
		}
	}
	return 0
}

// phase is a time, or a count, in which operations are done.
type phase struct {
	end     time.Time
	left    atomic.Int64
	counted bool
	mutex   sync.Mutex
	samples []float64
	done    int64
}

func (p *phase) goesOn() bool {
	if p.counted {
		return p.left.Add(-1) >= 0
	}
	return time.Now().Before(p.end)
}

func (p *phase) add(done int64, samples []float64) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.done += done
	p.samples = append(p.samples, samples...)
}

func warmUp(t task) *phase {
	p := &phase{end: time.Now().Add(time.Duration(t.warmUp * 1e9)), counted: t.operations > 0}
	return p
}

func measured(t task) *phase {
	p := &phase{end: time.Now().Add(time.Duration(t.seconds * 1e9)), counted: t.operations > 0}
	p.left.Store(t.operations)
	return p
}

// loops does an operation again and again, so many at the same time.
func loops(p *phase, inFlight int, op func()) {
	var all sync.WaitGroup
	for i := 0; i < inFlight; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			var done int64
			var samples []float64
			for p.goesOn() {
				begun := time.Now()
				op()
				if done%16 == 0 {
					samples = append(samples, float64(time.Since(begun).Nanoseconds())/1e3)
				}
				done++
			}
			p.add(done, samples)
		}()
	}
	all.Wait()
}

func handOff(t task, p *phase, conns []*zk.Conn) {
	var all sync.WaitGroup
	var mutex sync.Mutex
	var released time.Time
	for _, conn := range conns {
		all.Add(1)
		go func(conn *zk.Conn) {
			defer all.Done()
			for goesOn := true; goesOn; {
				lock := zk.NewLock(conn, lockPath, zk.WorldACL(zk.PermAll))
				check(lock.Lock())
				mutex.Lock()
				goesOn = p.goesOn()
				if goesOn {
					sample := float64(time.Since(released).Nanoseconds()) / 1e3
					if released.IsZero() {
						p.add(1, nil)
					} else {
						p.add(1, []float64{sample})
					}
				}
				released = time.Now()
				mutex.Unlock()
				check(lock.Unlock())
			}
		}(conn)
	}
	all.Wait()
}

func main() {
	t := parse()
	report := map[string]interface{}{
		"client": "go", "workload": t.workload, "in_flight": t.inFlight, "payload": t.payload, "style": "tasks",
		"unawaited": t.unawaited,
	}
	conn := connect(t)
	path := fmt.Sprintf("/bench-%d", t.payload)
	data := make([]byte, t.payload)
	// It may be there.
	conn.Create(path, data, 0, zk.WorldACL(zk.PermAll))
	var run func(p *phase)
	switch t.workload {
	case "get":
		run = func(p *phase) { loops(p, t.inFlight, func() { _, _, err := conn.Get(path); check(err) }) }
	case "list":
		// Our own client's program has made its children.
		listed := fmt.Sprintf("/bench-list-%d", t.children)
		run = func(p *phase) { loops(p, t.inFlight, func() { _, _, err := conn.Children(listed); check(err) }) }
	case "set":
		run = func(p *phase) { loops(p, t.inFlight, func() { _, err := conn.Set(path, data, -1); check(err) }) }
	case "lock":
		lock := zk.NewLock(conn, lockPath, zk.WorldACL(zk.PermAll))
		run = func(p *phase) { loops(p, 1, func() { check(lock.Lock()); check(lock.Unlock()) }) }
	case "connect":
		run = func(p *phase) {
			var samples []float64
			for p.goesOn() {
				begun := time.Now()
				one := connect(t)
				_, _, err := one.Get(path)
				check(err)
				samples = append(samples, float64(time.Since(begun).Nanoseconds())/1e3)
				one.Close()
			}
			p.add(int64(len(samples)), samples)
		}
	case "hand-off":
		conns := make([]*zk.Conn, t.inFlight)
		for i := range conns {
			conns[i] = connect(t)
		}
		run = func(p *phase) { handOff(t, p, conns) }
	case "idle":
		before := status("VmRSS:")
		conns := make([]*zk.Conn, t.inFlight)
		for i := range conns {
			conns[i] = connect(t)
		}
		run = func(p *phase) {
			time.Sleep(time.Until(p.end))
			p.done = int64(len(conns))
			report["resident_kib_grown"] = status("VmRSS:") - before
		}
	default:
		fmt.Fprintln(os.Stderr, "not with go:", t.workload)
		os.Exit(1)
	}
	if t.workload != "idle" {
		run(warmUp(t))
	}
	p := measured(t)
	cpu, begun := processor(), time.Now()
	run(p)
	elapsed := time.Since(begun).Seconds()
	cpu = processor() - cpu
	sort.Float64s(p.samples)
	if n := len(p.samples); n > 0 {
		report["p50_us"] = p.samples[n/2]
		report["p99_us"] = p.samples[(n-1)*99/100]
		report["p999_us"] = p.samples[(n-1)*999/1000]
	}
	report["operations"] = p.done
	report["seconds"] = elapsed
	report["ops_per_second"] = float64(p.done) / elapsed
	report["cpu_us_per_op"] = cpu * 1e6 / float64(p.done)
	report["cpu_share"] = cpu / elapsed
	report["resident_kib"] = status("VmRSS:")
	report["peak_kib"] = status("VmHWM:")
	line, err := json.Marshal(report)
	check(err)
	fmt.Println(string(line))
}
