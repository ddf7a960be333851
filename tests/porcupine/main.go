// Judges histories of nodes by porcupine, which is not ours: a history a line in, a verdict a line out.
//
// The rules are those of src/sim/check/linear.rs, said once more. Writes, and reads behind a sync, happen between being
// asked for and being answered. Plain reads may be late: they happen before their answer, and in the order of their
// session. What was never answered may happen at any time after it was asked for, or never.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	// How long one history may take.
	limit = 20 * time.Second
	// How long a line may be.
	lineMax = 64 << 20
	// How many sessions may take part in one history.
	sessionsMax = 64
)

// operation is something that was asked of a node; operations come in the order of their asking.
type operation struct {
	Session  int64  `json:"session"`
	Asked    int64  `json:"asked"`
	Answered int64  `json:"answered"`
	Ask      string `json:"ask"`
	Value    uint64 `json:"value"`
	// The wanted one, -1 for any.
	Version int32  `json:"version"`
	Answer  string `json:"answer"`
	Seen    *node  `json:"seen"`
	// What a set has been written with.
	Written int32 `json:"written"`
}

type node struct {
	Value   uint64 `json:"value"`
	Version int32  `json:"version"`
}

// step is an operation with its place in its session.
type step struct {
	operation
	session int
	// How many operations of its session were asked before and answered at some time.
	before uint16
}

// state is a node, and how far each session has come.
type state struct {
	there bool
	node
	done [sessionsMax]uint16
}

func (op *operation) open() bool { return op.Answer == "open" }

func (op *operation) reads() bool { return op.Ask == "read" || op.Ask == "late-read" }

// answer is what a node says, and what it is afterwards.
func (s state) answer(op *operation) (state, string) {
	bit := uint64(1) << (op.Value % 64)
	switch op.Ask {
	case "read", "late-read":
		return s, "saw"
	case "create":
		if s.there {
			return s, "node-exists"
		}
		s.there, s.node = true, node{op.Value, 0}
		return s, "done"
	case "set":
		if !s.there {
			return s, "no-node"
		}
		if op.Version >= 0 && op.Version != s.Version {
			return s, "bad-version"
		}
		s.node = node{op.Value, s.Version + 1}
		return s, "version"
	case "delete":
		if !s.there {
			return s, "no-node"
		}
		if op.Version >= 0 && op.Version != s.Version {
			return s, "bad-version"
		}
		s.there, s.node = false, node{}
		return s, "done"
	case "add":
		if s.Value&bit != 0 {
			return s, "node-exists"
		}
		s.there, s.Value = true, s.Value|bit
		return s, "done"
	case "remove":
		if s.Value&bit == 0 {
			return s, "no-node"
		}
		s.Value &^= bit
		s.there = s.Value != 0
		return s, "done"
	}
	panic("unknown request " + op.Ask)
}

// fits is whether the answer that came is the one that the node gives.
func fits(op *operation, after state, given string) bool {
	if given != op.Answer {
		return false
	}
	switch given {
	case "saw":
		if op.Seen == nil {
			return !after.there
		}
		return after.there && *op.Seen == after.node
	case "version":
		return op.Written == after.Version
	}
	return true
}

var model = porcupine.NondeterministicModel{
	Init: func() []interface{} { return []interface{}{state{}} },
	Step: func(from, input, _ interface{}) []interface{} {
		before, op := from.(state), input.(*step)
		if op.open() {
			// It has never happened, or now.
			after, _ := before.answer(&op.operation)
			if before.done[op.session] < op.before || after == before {
				return []interface{}{before}
			}
			return []interface{}{before, after}
		}
		if before.done[op.session] != op.before {
			return nil
		}
		after, given := before.answer(&op.operation)
		if !fits(&op.operation, after, given) {
			return nil
		}
		after.done[op.session]++
		return []interface{}{after}
	},
	Equal: func(one, other interface{}) bool { return one.(state) == other.(state) },
}

func judge(operations []operation) (string, error) {
	sessions := map[int64]int{}
	var done [sessionsMax]uint16
	var history []porcupine.Operation
	for number := range operations {
		op := &operations[number]
		if op.open() && op.reads() {
			// A read without a reader says nothing.
			continue
		}
		session, known := sessions[op.Session]
		if !known {
			session = len(sessions)
			if session == sessionsMax {
				return "", fmt.Errorf("more than %d sessions", sessionsMax)
			}
			sessions[op.Session] = session
		}
		input := &step{operation: *op, session: session, before: done[session]}
		from, until := op.Asked, op.Answered
		if op.open() {
			until = math.MaxInt64
		} else {
			done[session]++
		}
		if op.Ask == "late-read" {
			from = -1
		}
		history = append(history, porcupine.Operation{
			ClientId: number, Input: input, Call: from, Return: until,
		})
	}
	verdict := porcupine.CheckOperationsTimeout(model.ToModel(), history, limit)
	switch verdict {
	case porcupine.Ok:
		return "linearizable", nil
	case porcupine.Illegal:
		return "not", nil
	}
	return "undecided", nil
}

func run() error {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, lineMax)
	for lines.Scan() {
		var operations []operation
		if err := json.Unmarshal(lines.Bytes(), &operations); err != nil {
			return err
		}
		verdict, err := judge(operations)
		if err != nil {
			return err
		}
		fmt.Println(verdict)
	}
	return lines.Err()
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "porcupine:", err)
		os.Exit(1)
	}
}
