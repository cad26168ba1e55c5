package keys

import (
	"math/bits"
	"strings"
)

// tagOf returns a text of zeros and ones that is in a slot. The checksum is
// linear: to turn a zero into a one changes it by bits that depend on nothing
// but the place. Among 16 places there are 14 whose changes together make every
// slot.
func tagOf(slot uint16) string {
	const slots, places = 14, 16 // bits of a slot, digits of the tag
	text := []byte(strings.Repeat("0", places))
	zero := crc16(string(text))
	var changes, digits [slots]uint16 // by their highest bit, and by which digits
	reduce := func(bits, used uint16) (rest, by uint16) {
		for b := slots - 1; b >= 0; b-- {
			if bits>>b&1 == 0 {
				continue
			}
			if changes[b] == 0 {
				return bits, used
			}
			bits, used = bits^changes[b], used^digits[b]
		}
		return 0, used
	}
	for i := range places {
		text[i] = '1'
		change, used := reduce((crc16(string(text))^zero)%(1<<slots), 1<<i)
		text[i] = '0'
		if change != 0 {
			b := bits.Len16(change) - 1
			changes[b], digits[b] = change, used
		}
	}
	_, used := reduce((slot^zero)%(1<<slots), 0)
	for i := range places {
		text[i] += byte(used >> i & 1)
	}
	return string(text)
}

// hashTag returns what the server hashes instead of the whole key: the text
// between the first opening brace and the first closing brace after it,
// unless it is empty.
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
	return crc16(key) % 16384
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
