package keys

import (
	"fmt"
	"math/bits"
	"strings"
	"sync"
)

// Slots is how many slots every Redis Cluster has.
const Slots = 16384

// tags returns a text of zeros and ones for each slot; the texts of 16 digits cover all slots. All
// are computed on first use, in about 10 ms, because few names need one.
var tags = sync.OnceValue(func() *[Slots]string {
	var all [Slots]string
	for n := range 1 << 16 {
		text := fmt.Sprintf("%016b", bits.Reverse16(uint16(n)))
		if slot := Slot(text); all[slot] == "" {
			all[slot] = text
		}
	}
	return &all
})

// tagOf returns a text of zeros and ones that is in the given slot.
func tagOf(slot uint16) string { return tags()[slot] }

// hashTag returns the part of a key that the server hashes: the text between the first opening
// brace and the first closing brace after it. It reports false if there is none or it is empty; the
// server then hashes the whole key.
func hashTag(key string) (tag string, ok bool) {
	_, rest, ok := strings.Cut(key, "{")
	if !ok {
		return "", false
	}
	tag, _, ok = strings.Cut(rest, "}")
	return tag, ok && tag != ""
}

// Slot returns the slot of a key in a Redis Cluster.
func Slot(key string) uint16 {
	if tag, ok := hashTag(key); ok {
		key = tag
	}
	return crc16(key) % Slots
}

// crc16 is CRC-16/XMODEM, as in the Redis Cluster specification.
func crc16(s string) uint16 {
	var crc uint16
	for i := range len(s) {
		crc ^= uint16(s[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}
