package onetime

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-locks/holdfast/driver"
)

// fixed is a constant secret with its checksum, because the format must not change: secrets outlive
// versions. Another program computed the CRC-32.
const fixed = "hf1t_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg0CZMf2"

func TestFormat(t *testing.T) {
	random, err := parse(fixed)
	if err != nil || random != "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg" {
		t.Fatalf("parse = %q, %v", random, err)
	}
	// printf 'invitations\n%s' "$random" | sha256sum
	want := driver.Proof("1be63b7e67f1835a3a37d424f252f7eecfd80ef572251610a9f72f10ef7d8592")
	p := proof("invitations", random)
	if p != want {
		t.Errorf("proof = %s, want %s", p, want)
	}
	// printf %s "$proof" | sha256sum
	if d, id := p.Digest(), driver.Digest("b565d930e938943005e5cf7a0f05e9cd306772eb8596dc8148a6777d016454d5"); d != id {
		t.Errorf("digest = %s, want %s", d, id)
	}
}

func TestNewSecrets(t *testing.T) {
	pattern := regexp.MustCompile(Pattern)
	seen, used := map[string]bool{}, map[rune]bool{}
	for range 1000 {
		secret := newSecret(systemRandom)
		if seen[secret] {
			t.Fatal("a secret came twice")
		}
		seen[secret] = true
		random, err := parse(secret)
		if err != nil || len(random) != randomLen || !strings.Contains(secret, random) {
			t.Fatalf("parse of a new secret = %q, %v", random, err)
		}
		for _, c := range random {
			used[c] = true
		}
		log := "GET /login?t=" + secret + "&next=/ HTTP/1.1"
		if found := pattern.FindString(log); found != secret {
			t.Fatalf("Pattern finds %q in %q", found, log)
		}
	}
	// 43,000 draws miss one of 62 digits with a probability below 1e-300.
	if len(used) != 62 {
		t.Errorf("%d different digits were drawn, want 62", len(used))
	}
}

// TestDigitsAreDrawnEvenly checks that bytes that would make some digits more likely are discarded,
// and that the other bytes are used evenly.
func TestDigitsAreDrawnEvenly(t *testing.T) {
	next, calls := byte(255), 0
	countDown := func(b []byte) {
		calls++
		for i := range b {
			b[i] = next
			next--
		}
	}
	random, err := parse(newSecret(countDown))
	if err != nil {
		t.Fatal(err)
	}
	// 255 to 248 are discarded; 247 is the first used byte: 3*62+61.
	want := ""
	for i := range randomLen {
		want += string(digits[61-i])
	}
	if random != want || calls != 1 {
		t.Errorf("drawn %q in %d reads, want %q in 1", random, calls, want)
	}
	counts := map[byte]int{}
	for b := range fair {
		counts[digits[b%len(digits)]]++
	}
	for c, n := range counts {
		if n != counts['0'] || len(counts) != 62 {
			t.Errorf("digit %c stands for %d bytes, 0 for %d", c, n, counts['0'])
		}
	}
}

// TestChecksumFindsEverySingleChange changes each character to every other byte.
func TestChecksumFindsEverySingleChange(t *testing.T) {
	for range 4 {
		secret := newSecret(systemRandom)
		for i := range len(secret) {
			for c := range 256 {
				changed := []byte(secret)
				changed[i] = byte(c)
				if string(changed) == secret {
					continue
				}
				if _, err := parse(string(changed)); !errors.Is(err, ErrMalformed) {
					t.Fatalf("%#x for %#x at %d: error %v, want ErrMalformed", c, secret[i], i, err)
				}
			}
		}
	}
}

func TestMalformed(t *testing.T) {
	secret := newSecret(systemRandom)
	cases := map[string]string{
		"empty":           "",
		"prefix only":     prefix,
		"cut off":         secret[:len(secret)-1],
		"one more":        secret + "0",
		"first cut off":   secret[1:],
		"space before":    " " + secret,
		"line feed after": secret + "\n",
		"other prefix":    "hf2t_" + secret[len(prefix):],
		"upper case":      strings.ToUpper(secret),
		"lower case":      strings.ToLower(secret),
		"twice":           secret + secret,
		"right length":    strings.Repeat("é", secretLen/2),
		// With a valid checksum, only the alphabet shows the error.
		"dash": withChecksum(prefix + strings.Repeat("-", randomLen)),
		"zero": withChecksum(prefix + strings.Repeat("\x00", randomLen)),
		"dot":  withChecksum(prefix + strings.Repeat("a", randomLen-1) + "."),
		"dot2": withChecksum(prefix + strings.Repeat("a", 20) + "." + strings.Repeat("a", randomLen-21)),
	}
	for i := range len(secret) - 1 {
		if secret[i] != secret[i+1] {
			cases["swapped at "+string(rune('A'+i))] = secret[:i] + secret[i+1:i+2] + secret[i:i+1] + secret[i+2:]
		}
	}
	for name, text := range cases {
		random, err := parse(text)
		if !errors.Is(err, ErrMalformed) || random != "" {
			t.Errorf("%s: parse = %q, %v; want ErrMalformed", name, random, err)
			continue
		}
		if strings.Contains(err.Error(), secret[len(prefix):len(prefix)+8]) {
			t.Errorf("%s: the error shows the secret: %v", name, err)
		}
	}
}

func withChecksum(text string) string { return text + string(checksum([]byte(text))) }

// FuzzParse checks that the parser accepts exactly the secrets that the service would write.
func FuzzParse(f *testing.F) {
	f.Add(fixed)
	f.Add("")
	f.Add(fixed[:53])
	f.Add(withChecksum(prefix + strings.Repeat("-", randomLen)))
	pattern := regexp.MustCompile("^(?:" + Pattern + ")$")
	f.Fuzz(func(t *testing.T, text string) {
		random, err := parse(text)
		if (err == nil) != (random != "" && withChecksum(prefix+random) == text) {
			t.Fatalf("parse(%q) = %q, %v", text, random, err)
		}
		if err != nil && (!errors.Is(err, ErrMalformed) || random != "") {
			t.Fatalf("parse(%q) = %q, %v; want ErrMalformed", text, random, err)
		}
		if err == nil && !pattern.MatchString(text) {
			t.Fatalf("Pattern does not match %q, which is accepted", text)
		}
		// With the prefix and a valid checksum only the alphabet and the length decide.
		fitting := withChecksum(prefix + text)
		_, err = parse(fitting)
		if isGood := len(text) == randomLen && strings.Trim(text, digits) == ""; (err == nil) != isGood {
			t.Fatalf("parse(%q): %v", fitting, err)
		}
	})
}
