//go:build unix

package recipes

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// serverObjects returns the objects in server.yaml.
func serverObjects(t *testing.T) []string {
	t.Helper()
	all := strings.Split(read(t, "kubernetes/server.yaml"), "\n---\n")
	if len(all) != 5 {
		t.Fatalf("%d objects, want 5", len(all))
	}
	return all
}

// A serviceMonitor has the fields of the operator's type that server.yaml uses.
type serviceMonitor struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Selector  meta.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port     string `json:"port"`
			Path     string `json:"path"`
			Interval string `json:"interval"`
		} `json:"endpoints"`
	} `json:"spec"`
}

// TestServerObjects checks that the other objects match the pods and ports of the Deployment, that
// one pod stays when a node is drained, and that the memory limit of Go is below the kernel's.
func TestServerObjects(t *testing.T) {
	objects := serverObjects(t)
	var d apps.Deployment
	var service core.Service
	var budget policy.PodDisruptionBudget
	var network networking.NetworkPolicy
	var monitor serviceMonitor
	for i, to := range []any{&d, &service, &budget, &network, &monitor} {
		strictly(t, objects[i], to)
	}
	pod := d.Spec.Template
	for name, selector := range map[string]map[string]string{
		"the service":         service.Spec.Selector,
		"the budget":          budget.Spec.Selector.MatchLabels,
		"the network policy":  network.Spec.PodSelector.MatchLabels,
		"the service monitor": monitor.Spec.Selector.MatchLabels,
	} {
		labels := pod.Labels
		if name == "the service monitor" {
			labels = service.Labels
		}
		for k, v := range selector {
			if labels[k] != v {
				t.Errorf("%s selects %s=%s, and there are %v", name, k, v, labels)
			}
		}
		if len(selector) == 0 {
			t.Errorf("%s selects everything", name)
		}
	}
	ports := map[string]int32{}
	for _, p := range pod.Spec.Containers[0].Ports {
		ports[p.Name] = p.ContainerPort
	}
	for _, p := range service.Spec.Ports {
		if ports[p.TargetPort.StrVal] != p.Port {
			t.Errorf("the service has the port %d for %s, and the pod has %v", p.Port, p.TargetPort.StrVal, ports)
		}
	}
	for _, rule := range network.Spec.Ingress {
		if len(rule.From) == 0 || len(rule.Ports) != 1 || ports[rule.Ports[0].Port.StrVal] == 0 {
			t.Errorf("the network policy has %+v, and the pod has %v", rule, ports)
		}
	}
	if p := monitor.Spec.Endpoints[0]; ports[p.Port] == 0 || p.Path != "/metrics" {
		t.Errorf("the service monitor has %+v", p)
	}
	if n := budget.Spec.MaxUnavailable.IntValue(); n < 1 || n >= int(*d.Spec.Replicas) {
		t.Errorf("%d of %d pods may be away", n, *d.Spec.Replicas)
	}
	c := pod.Spec.Containers[0]
	var soft resource.Quantity
	for _, e := range c.Env {
		if e.Name == "GOMEMLIMIT" {
			soft = resource.MustParse(strings.TrimSuffix(e.Value, "B"))
		}
	}
	if hard := c.Resources.Limits.Memory(); soft.IsZero() || soft.Cmp(*hard) >= 0 || soft.Cmp(*c.Resources.Requests.Memory()) <= 0 {
		t.Errorf("GOMEMLIMIT is %v, and the limit %v", &soft, hard)
	}
}

// TestServerDeployment checks that the pod has enough time to end, that its probes use the server's
// paths, and that the server has the flags with which it is started.
func TestServerDeployment(t *testing.T) {
	var d apps.Deployment
	strictly(t, serverObjects(t)[0], &d)
	pod := d.Spec.Template.Spec
	c := pod.Containers[0]
	var drain time.Duration
	for _, arg := range c.Command {
		if text, found := strings.CutPrefix(arg, "--drain="); found {
			drain, _ = time.ParseDuration(text) // 0 fails below
		}
	}
	stop := time.Duration(c.Lifecycle.PreStop.Sleep.Seconds)*time.Second + drain
	if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; drain == 0 || grace <= stop {
		t.Errorf("it has %s, and takes %s", grace, stop)
	}
	if ready, live := c.ReadinessProbe.HTTPGet, c.LivenessProbe.HTTPGet; ready.Path != "/readyz" || live.Path != "/healthz" {
		t.Errorf("it is asked for %s and %s", ready.Path, live.Path)
	}
	for k, v := range d.Spec.Selector.MatchLabels {
		if d.Spec.Template.Labels[k] != v {
			t.Errorf("the pod has not the label %s=%s", k, v)
		}
	}
	f := newFleet(t)
	cmd := exec.CommandContext(t.Context(), filepath.Join(f.bin, c.Command[0]), c.Command[1:]...)
	cmd.Env = append(cmd.Environ(), "HOLDFAST_STORE="+f.store)
	out, _ := cmd.CombinedOutput() // the status is checked below
	if status := cmd.ProcessState.ExitCode(); status != 78 || !strings.Contains(string(out), "/tls/tls.crt") {
		t.Errorf("status %d, want 78, because there is no certificate here:\n%s", status, out)
	}
}
