// A tier in Go: a goroutine for each connection.
//
// Usage: go-tier HOST:PORT UPSTREAM|- [forward=N] [idle=N] STAGE .., with times in microseconds, such as pool=4x20000us.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func number(text string) int {
	value, err := strconv.Atoi(strings.TrimSuffix(text, "us"))
	check(err)
	return value
}

func duration(text string) time.Duration { return time.Duration(number(text)) * time.Microsecond }

// Each token is the time at which a worker became free: late sleeps do not add up.
func pool(workers int, hold time.Duration) func() {
	tokens := make(chan time.Time, workers)
	for range workers {
		tokens <- time.Now()
	}
	return func() {
		begin := time.Now()
		if free := <-tokens; free.After(begin) {
			begin = free
		}
		free := begin.Add(hold)
		time.Sleep(time.Until(free))
		tokens <- free
	}
}

// RUSAGE_THREAD, which the package syscall does not name.
const thisThread = 1

func used() time.Duration {
	var usage syscall.Rusage
	check(syscall.Getrusage(thisThread, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func burn(busy time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for end := used() + busy; used() < end; {
	}
}

func stage(word string) func() {
	name, value, _ := strings.Cut(word, "=")
	switch name {
	case "delay":
		return func() { time.Sleep(duration(value)) }
	case "pool":
		workers, hold, _ := strings.Cut(value, "x")
		return pool(number(workers), duration(hold))
	case "lock":
		return pool(1, duration(value))
	case "burn":
		return func() { burn(duration(value)) }
	}
	check(fmt.Errorf("'%s' is no stage", word))
	return nil
}

func main() {
	address, upstream := os.Args[1], os.Args[2]
	var stages []func()
	transport := &http.Transport{MaxIdleConnsPerHost: 4096}
	for _, word := range os.Args[3:] {
		switch name, value, _ := strings.Cut(word, "="); name {
		case "forward":
			transport.MaxConnsPerHost = number(value)
		case "idle":
			for range number(value) {
				// A thread of its own, locked to a goroutine that waits.
				go func() { runtime.LockOSThread(); select {} }()
			}
		default:
			stages = append(stages, stage(word))
		}
	}
	client := &http.Client{Transport: transport}
	listener, err := net.Listen("tcp", address)
	check(err)
	check(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, serve := range stages {
			serve()
		}
		if upstream != "-" {
			response, err := client.Get("http://" + upstream + "/")
			if err != nil {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
		io.WriteString(w, "ok")
	})))
}
