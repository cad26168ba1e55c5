//go:build unix

package recipes

import (
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// strictly decodes YAML into a type of Kubernetes, which must have all fields of the text.
func strictly(t *testing.T, text string, to any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), to); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// sidecar returns the two objects in sidecar.yaml.
func sidecar(t *testing.T) (d apps.Deployment, m core.ConfigMap) {
	t.Helper()
	first, second, _ := strings.Cut(read(t, "kubernetes/sidecar.yaml"), "\n---\n")
	strictly(t, first, &d)
	strictly(t, second, &m)
	return d, m
}

// sidecarScripts returns the scripts of the sidecar. The sidecar's command must run one of them.
func sidecarScripts(t *testing.T) map[string]string {
	t.Helper()
	d, m := sidecar(t)
	beside := d.Spec.Template.Spec.InitContainers[0]
	if got := strings.Join(beside.Command, " "); got != "sh /scripts/stand.sh" {
		t.Fatalf("the sidecar runs %s", got)
	}
	return m.Data
}

// TestSidecarFile checks that the volumes and names in the file match, and that the container is a
// sidecar.
func TestSidecarFile(t *testing.T) {
	d, m := sidecar(t)
	pod := d.Spec.Template
	beside := pod.Spec.InitContainers[0]
	if d.Kind != "Deployment" || m.Kind != "ConfigMap" || d.APIVersion != "apps/v1" || m.APIVersion != "v1" {
		t.Errorf("a %s %s and a %s %s", d.APIVersion, d.Kind, m.APIVersion, m.Kind)
	}
	if p := beside.RestartPolicy; p == nil || *p != core.ContainerRestartPolicyAlways {
		t.Error("it ends before the container begins, as a sidecar does not")
	}
	for k, v := range d.Spec.Selector.MatchLabels {
		if pod.Labels[k] != v {
			t.Errorf("the pod has not the label %s=%s", k, v)
		}
	}
	volumes := map[string]core.Volume{}
	for _, v := range pod.Spec.Volumes {
		volumes[v.Name] = v
	}
	for _, c := range append(pod.Spec.Containers, beside) {
		for _, at := range c.VolumeMounts {
			if _, ok := volumes[at.Name]; !ok {
				t.Errorf("%s mounts %s, which there is not", c.Name, at.Name)
			}
		}
	}
	if c := volumes["scripts"].ConfigMap; c == nil || c.Name != m.Name {
		t.Errorf("the scripts are not those of the config map: %+v", c)
	}
	secret(t, beside)
}

// secret checks that a container gets its store from a secret.
func secret(t *testing.T, c core.Container) {
	t.Helper()
	for _, e := range c.Env {
		if e.Name == "HOLDFAST_STORE" && e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil && e.Value == "" {
			return
		}
	}
	t.Errorf("%s has no HOLDFAST_STORE from a secret", c.Name)
}

// TestCronJob checks that several pods of one night do the work once, and that the next night it is
// done again.
func TestCronJob(t *testing.T) {
	var job batch.CronJob
	strictly(t, read(t, "kubernetes/cronjob.yaml"), &job)
	pod := job.Spec.JobTemplate.Spec.Template.Spec
	c := pod.Containers[0]
	secret(t, c)
	label := "metadata.labels['" + batch.JobNameLabel + "']"
	if e := c.Env[0]; e.Name != "JOB_NAME" || e.ValueFrom.FieldRef == nil || e.ValueFrom.FieldRef.FieldPath != label {
		t.Errorf("the key is %+v, want that of the field %s", e, label)
	}
	if job.Kind != "CronJob" || job.APIVersion != "batch/v1" || *pod.TerminationGracePeriodSeconds < 30 {
		t.Errorf("%s %s, %d s to end", job.APIVersion, job.Kind, *pod.TerminationGracePeriodSeconds)
	}
	f := newFleet(t)
	f.job(t, "report", "sleep .1")
	for _, name := range []string{"report-29456789", "report-29458229"} {
		var args []string
		for _, a := range c.Command {
			args = append(args, strings.ReplaceAll(a, "$(JOB_NAME)", name)) // like the kubelet
		}
		if got := f.onHosts(t, 3, nil, args...); got[0] != 3 {
			t.Errorf("%s: statuses %v, want 0", name, got)
		}
	}
	if got := f.lines(t); got != "begin end begin end" {
		t.Errorf("%s, want the work of two nights", got)
	}
}

// workflow returns the commands of the CI file that need the lock.
func workflow(t *testing.T) (commands []string) {
	t.Helper()
	var w struct {
		Name string         `json:"name"`
		On   map[string]any `json:"true"` // "on" is true in YAML 1.1
		Jobs map[string]struct {
			RunsOn string            `json:"runs-on"`
			Env    map[string]string `json:"env"`
			Steps  []struct {
				Name, Uses, Run string
				With            map[string]string
			} `json:"steps"`
		} `json:"jobs"`
	}
	strictly(t, read(t, "ci/deploy.yaml"), &w)
	for _, step := range w.Jobs["deploy"].Steps {
		if step.Name == "deploy" {
			commands = append(commands, step.Run)
		}
	}
	if w.Jobs["deploy"].Env["HOLDFAST_STORE"] == "" || len(w.On) != 1 {
		t.Errorf("the workflow is %+v", w)
	}
	return commands
}
