package lockinfo

import "testing"

// TestHolderString checks that unknown fields are left out, and that a person has no process.
func TestHolderString(t *testing.T) {
	for want, h := range map[string]Holder{
		"deploy@web-3 (pid 812, deploy.sh)":           {Host: "web-3", User: "deploy", PID: 812, Program: "deploy.sh"},
		"worker on deploy@web-3 (pid 812, deploy.sh)": {Host: "web-3", User: "deploy", PID: 812, Program: "deploy.sh", Label: "worker"},
		"worker on web-3 (pid 812)":                   {Host: "web-3", PID: 812, Label: "worker"},
		"web-3":                                       {Host: "web-3"},
		"web-3 (deploy.sh)":                           {Host: "web-3", Program: "deploy.sh"},
		"deploy (pid 812)":                            {User: "deploy", PID: 812},
		"worker on deploy":                            {User: "deploy", Label: "worker"},
		"worker (pid 812)":                            {PID: 812, Label: "worker"},
		"ada@ops-1 (a person)":                        {Host: "ops-1", User: "ada", PID: 812, Program: "holdfast", Person: true},
		"another client":                              {},
		"ci as worker on deploy@web-3 (pid 812)":      {Caller: "ci", Host: "web-3", User: "deploy", PID: 812, Label: "worker"},
		"ci as worker on web-3":                       {Caller: "ci", Host: "web-3", User: "ci", Label: "worker"},
		"ci@web-3 (pid 812)":                          {Caller: "ci", Host: "web-3", User: "ci", PID: 812},
		"eve as ci@web-3":                             {Caller: "eve", Host: "web-3", User: "ci"},
		"eve as ada on ops":                           {Caller: "eve", Label: "ada on ops"},
		"ada (a person)":                              {Caller: "ada", User: "ada", Person: true},
		"ci":                                          {Caller: "ci"},
	} {
		if got := h.String(); got != want {
			t.Errorf("%+v is %q, want %q", h, got, want)
		}
	}
}

// TestHiddenLeaseID checks that a hidden lease ID identifies its lease to the holder, and is not
// the lease ID.
func TestHiddenLeaseID(t *testing.T) {
	id, other := NewLeaseID(), NewLeaseID()
	if !id.Hidden().Valid() || id.Hidden() == id {
		t.Errorf("%s is shown as %s", id, id.Hidden())
	}
	if !id.Is(id) || !id.Is(id.Hidden()) || id.Hidden().Is(id) {
		t.Error("a lease ID is not what is shown of it, or the other way round")
	}
	if id.Is(other) || id.Is(other.Hidden()) || id.Is("") || id.Is(id.Hidden().Hidden()) {
		t.Error("a lease ID is another's")
	}
}
