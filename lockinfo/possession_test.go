package lockinfo

import (
	"testing"
	"time"
)

// TestPossession checks the description of a possession. It contains the end of a lease only if the
// lease is not renewed, and it does not call a process that has released the lock its holder.
func TestPossession(t *testing.T) {
	deploy := Holder{Host: "web-3", User: "deploy", PID: 812, Program: "deploy.sh"}
	ada := Holder{Host: "ops-1", User: "ada", Person: true}
	for want, b := range map[string]Possession{
		"held by deploy@web-3 (pid 812, deploy.sh) for 12m":                       {Holder: deploy, Since: 12*time.Minute + 3*time.Second, ExpiresIn: 29 * time.Second},
		"held by deploy@web-3 (pid 812, deploy.sh)":                               {Holder: deploy, ExpiresIn: 29 * time.Second},
		"held by ada@ops-1 (a person) for 3h, ends in 45h":                        {Holder: ada, Since: 3 * time.Hour, ExpiresIn: 45 * time.Hour},
		"kept closed for another 45s after deploy@web-3 (deploy.sh) released it":  {Holder: deploy, Since: time.Minute, ExpiresIn: 45 * time.Second, Released: true},
		"kept closed for another 45s":                                             {Since: time.Minute, ExpiresIn: 45 * time.Second, Released: true},
		"held by a client that is not holdfast, with no expiry":                   {ExpiresIn: Never},
		"held by a client that is not holdfast, ends in 12s unless it is renewed": {ExpiresIn: 12 * time.Second, Foreign: true},
		"held by another client":                                                  {ExpiresIn: time.Second},
		"held by another client for 5m10s":                                        {Since: 5*time.Minute + 10*time.Second, ExpiresIn: time.Second},
	} {
		if got := b.String(); got != want {
			t.Errorf("%+v is %q, want %q", b, got, want)
		}
	}
	foreign := Holding{ExpiresIn: Never}
	if got, want := foreign.Possession(), "held by a client that is not holdfast, with no expiry"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSpan(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "350ms": 350*time.Millisecond + 400*time.Microsecond, "1.4s": 1400 * time.Millisecond, "2s": 2 * time.Second,
		"29s": 29*time.Second + 100*time.Millisecond, "1m": time.Minute, "4m30s": 4*time.Minute + 30*time.Second,
		"12m": 12*time.Minute + 29*time.Second, "1h": time.Hour, "3h5m": 3*time.Hour + 5*time.Minute, "48h": 48 * time.Hour,
	} {
		if got := Span(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
