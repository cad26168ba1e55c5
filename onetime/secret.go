package onetime

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/holdfast-locks/holdfast/driver"
)

// Pattern is a regular expression (RE2, PCRE, ECMAScript) that finds secrets in
// text, for secret scanners and log filters. The checksum distinguishes a secret
// from text that looks like one: the last 6 characters are the CRC-32 (IEEE) of
// the 48 before them, as a number in base 62 with the digits 0-9, A-Z, a-z.
const Pattern = `\bhf1t_[0-9A-Za-z]{49}\b`

const (
	prefix     = "hf1t_"
	randomLen  = 43 // 62^43 is just above 2^256
	checkLen   = 6  // 62^6 is above 2^32
	secretLen  = len(prefix) + randomLen + checkLen
	digits     = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	fair       = 256 / len(digits) * len(digits) // random bytes below it make all digits equally likely
	randomRead = 64                              // bytes at a time: usually enough for a secret
)

// newSecret draws a secret. read fills a slice with random bytes.
func newSecret(read func([]byte)) string {
	text := make([]byte, 0, secretLen)
	text = append(text, prefix...)
	var random [randomRead]byte
	for len(text) < len(prefix)+randomLen {
		read(random[:])
		for _, b := range random {
			if int(b) < fair && len(text) < len(prefix)+randomLen {
				text = append(text, digits[int(b)%len(digits)])
			}
		}
	}
	return string(append(text, checksum(text)...))
}

// systemRandom is the source of secrets.
func systemRandom(b []byte) {
	rand.Read(b) // never fails
}

// checksum returns the CRC-32 of text in base 62. It finds every change of one
// character and every swap of two neighbours.
func checksum(text []byte) []byte {
	sum := crc32.ChecksumIEEE(text)
	check := make([]byte, checkLen)
	for i := range check {
		check[checkLen-1-i] = digits[sum%uint32(len(digits))]
		sum /= uint32(len(digits))
	}
	return check
}

// parse returns the random part of a secret, or an error that wraps
// ErrMalformed and does not contain any of it.
func parse(secret string) (random string, err error) {
	switch {
	case len(secret) != secretLen:
		return "", fmt.Errorf("%w: it has %d characters, want %d", ErrMalformed, len(secret), secretLen)
	case !strings.HasPrefix(secret, prefix):
		return "", fmt.Errorf("%w: it does not begin with %s", ErrMalformed, prefix)
	}
	text, check := secret[:secretLen-checkLen], secret[secretLen-checkLen:]
	// In constant time: the checksum reveals something of the secret.
	if subtle.ConstantTimeCompare([]byte(check), checksum([]byte(text))) != 1 {
		return "", fmt.Errorf("%w: its checksum is wrong", ErrMalformed)
	}
	random = text[len(prefix):]
	if strings.TrimLeft(random, digits) != "" {
		return "", fmt.Errorf("%w: it has other characters than letters and digits", ErrMalformed)
	}
	return random, nil
}

// proof returns the proof that a client has the secret: the SHA-256 of the collection's name,
// a line feed, which no name contains, and the random part. Its Digest is the ID of the token.
func proof(name, random string) driver.Proof {
	sum := sha256.Sum256([]byte(name + "\n" + random))
	return driver.Proof(hex.EncodeToString(sum[:]))
}
