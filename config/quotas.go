package config

import (
	"time"

	"gopkg.in/yaml.v3"

	"github.com/caisson-dev/caisson/sandbox"
)

// quotas takes in what owners may have.
func (f *File) quotas(usual yaml.Node, owners map[string]yaml.Node) (err error) {
	if f.Quotas.Default, err = f.quota(&usual); err != nil {
		return err
	}
	for owner, n := range owners {
		if err := sandbox.CheckOwner(owner); err != nil {
			return f.bad(n.Line, "quotas: %v", err)
		}
		if f.Quotas.Owners == nil {
			f.Quotas.Owners = map[string]sandbox.Quota{}
		}
		if f.Quotas.Owners[owner], err = f.quota(&n); err != nil {
			return err
		}
	}
	return nil
}

const quotaNames = "sandboxes, execs, memory, cpus, disk, requests, connections, traffic and traffic_rate"

// defaultWait is how long a request waits for room where the file is silent.
const defaultWait = sandbox.Duration(30 * time.Second)

// totals takes in what all may have, and how long a request waits.
func (f *File) totals(total, wait yaml.Node) (err error) {
	if f.Quotas.Total, err = f.quota(&total); err != nil {
		return err
	}
	if err := f.Quotas.Total.CheckTotal(); err != nil {
		return f.bad(total.Line, "quotas: %w", err)
	}
	if f.Quotas.Wait = defaultWait; wait.Kind == 0 {
		return nil
	}
	d, err := sandbox.ParseDuration(wait.Value)
	if err != nil || wait.Kind != yaml.ScalarNode || d < 0 {
		return f.bad(wait.Line, "quotas: wait is %q, and takes a time such as 30s", wait.Value)
	}
	f.Quotas.Wait = sandbox.Duration(d)
	return nil
}

// quota reads one; a node that is not there is none.
func (f *File) quota(n *yaml.Node) (q sandbox.Quota, err error) {
	if n.Kind == 0 {
		return q, nil
	}
	if n.Kind != yaml.MappingNode {
		return q, f.bad(n.Line, "quotas: write %s, each with a number", quotaNames)
	}
	fields := map[string]any{"sandboxes": &q.Sandboxes, "execs": &q.Execs, "memory": &q.Memory, "cpus": &q.CPUs, "disk": &q.Disk, "requests": &q.Requests,
		"connections": &q.Connections, "traffic": &q.Traffic, "traffic_rate": &q.TrafficRate}
	for i := 0; i < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		field, ok := fields[key.Value]
		if !ok {
			return q, f.bad(key.Line, "quotas: nothing is called %q: there are %s", key.Value, quotaNames)
		}
		if size, ok := field.(*sandbox.Bytes); ok {
			err = size.Set(v.Value)
		} else {
			err = v.Decode(field)
		}
		if err != nil {
			return q, f.bad(v.Line, "quotas: %s cannot be %q", key.Value, v.Value)
		}
	}
	if q.Sandboxes < 0 || q.Execs < 0 || q.Memory < 0 || q.CPUs < 0 || q.Disk < 0 || q.Requests < 0 || q.Connections < 0 || q.Traffic < 0 || q.TrafficRate < 0 {
		return q, f.bad(n.Line, "quotas: a number that is negative")
	}
	return q, nil
}
