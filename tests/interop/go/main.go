// Takes a lock through go-zookeeper again and again, and tells the resource of it.
//
// src/interop/contender.rs is the same for zk-locks, and explains the arguments.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// Of sessions. An acquire that fails may leave a node in the queue, behind which this process would wait in vain: so it
// gives up in the end, and ends the session, which removes the node.
const patience = 5

var errGaveUp = errors.New("gave-up-waiting")

// resource is what the lock protects, over a connection of our own.
type resource struct {
	conn    net.Conn
	answers *bufio.Reader
	ended   bool
}

func (r *resource) ask(request string) bool {
	if _, err := fmt.Fprintln(r.conn, request); err != nil {
		os.Exit(1)
	}
	answer, err := r.answers.ReadString('\n')
	if err != nil {
		os.Exit(1)
	}
	r.ended = r.ended || answer == "end\n"
	return answer == "ok\n"
}

type contender struct {
	servers       []string
	path, name    string
	hold, session time.Duration
	resource      *resource
	conn          *zk.Conn
	turns         int
}

func (c *contender) run() {
	for !c.resource.ended {
		if err := c.turn(); err != nil {
			log.Printf("a turn has failed: %v", err)
			word := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "zk: "), " ", "-")
			c.resource.ask("note " + word)
			c.disconnect()
		}
	}
	c.disconnect()
}

func (c *contender) disconnect() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

func (c *contender) turn() error {
	if c.conn == nil {
		conn, _, err := zk.Connect(c.servers, c.session, zk.WithLogInfo(false))
		if err != nil {
			return err
		}
		c.conn = conn
	}
	c.turns++
	mark := fmt.Sprintf("%s-%d-%d", c.name, os.Getpid(), c.turns)
	lock := zk.NewLock(c.conn, c.path, zk.WorldACL(zk.PermAll))
	acquired := make(chan error, 1)
	go func() { acquired <- lock.LockWithData([]byte(mark)) }()
	select {
	case err := <-acquired:
		if err != nil {
			return err
		}
	case <-time.After(patience * c.session):
		return errGaveUp
	}
	if err := c.visit(mark); err != nil {
		return err
	}
	return lock.Unlock()
}

// visit uses the resource. The lock does not tell its node, so that it is looked for.
func (c *contender) visit(mark string) error {
	children, _, err := c.conn.Children(c.path)
	if err != nil {
		return err
	}
	sort.Slice(children, func(i, j int) bool { return number(children[i]) < number(children[j]) })
	for _, child := range children {
		node := c.path + "/" + child
		data, stat, err := c.conn.Get(node)
		if errors.Is(err, zk.ErrNoNode) || err == nil && string(data) != mark {
			continue
		}
		if err != nil {
			return err
		}
		if c.resource.ask(fmt.Sprintf("enter alone %d %s", stat.Czxid, node)) {
			time.Sleep(c.hold)
			c.resource.ask(fmt.Sprintf("leave %d", stat.Czxid))
		}
		return nil
	}
	c.resource.ask("note lost-before-use")
	return nil
}

// number is what the servers have put behind a name.
func number(name string) string {
	if len(name) < 10 {
		return name
	}
	return name[len(name)-10:]
}

// endWithParent ends this process with the one that holds the other end of its input.
func endWithParent() {
	buffer := make([]byte, 1)
	for {
		if _, err := os.Stdin.Read(buffer); err != nil {
			os.Exit(1)
		}
	}
}

func whole(text string) int {
	number, err := strconv.Atoi(text)
	if err != nil {
		log.Fatal(err)
	}
	return number
}

func main() {
	go endWithParent()
	arguments := os.Args[1:]
	var done sync.WaitGroup
	for task := 0; task < whole(arguments[6]); task++ {
		conn, err := net.Dial("tcp", arguments[3])
		if err != nil {
			log.Fatal(err)
		}
		c := &contender{
			servers:  strings.Split(arguments[1], ","),
			path:     arguments[2],
			name:     fmt.Sprintf("%s.%d", arguments[5], task),
			hold:     time.Duration(whole(arguments[7])) * time.Millisecond,
			session:  time.Duration(whole(arguments[8])) * time.Millisecond,
			resource: &resource{conn: conn, answers: bufio.NewReader(conn)},
		}
		c.resource.ask(fmt.Sprintf("hello %s %s", arguments[4], c.name))
		done.Add(1)
		go func() {
			defer done.Done()
			c.run()
		}()
	}
	done.Wait()
}
