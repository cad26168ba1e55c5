/*
 * clock.c shifts the wall clock of a process that preloads it, or slews it, and nothing
 * else: the monotonic clocks go on as they are. What it does is in the file
 * $SHIFTED_CLOCKS/<process ID>, which this library makes, maps into memory, and reads
 * whenever the process asks for the time.
 *
 * The time itself comes from raw system calls. To look up the functions of the
 * C library that are replaced here would allocate memory, and the allocator of
 * redis-server asks for the time.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* 64-bit numbers, each of which is written at once. */
static volatile struct {
	int64_t shift;  /* microseconds that are added */
	int64_t ppm;    /* by how much the clock is fast */
	int64_t origin; /* since when: microseconds of the right clock */
} *wrong;

__attribute__((constructor)) static void map_shift(void)
{
	char path[4096];
	const char *dir = getenv("SHIFTED_CLOCKS");
	if (!dir)
		return;
	snprintf(path, sizeof path, "%s/%d", dir, (int)getpid());
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, sizeof *wrong) != 0)
		abort();
	void *at = mmap(NULL, sizeof *wrong, PROT_READ, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		abort();
	close(fd);
	wrong = at;
}

int clock_gettime(clockid_t id, struct timespec *now)
{
	int r = (int)syscall(SYS_clock_gettime, id, now);
	if (r == 0 && wrong && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
		int64_t ns = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec;
		int64_t slewed = wrong->ppm ? (ns / 1000 - wrong->origin) * wrong->ppm / 1000 : 0;
		ns += wrong->shift * 1000 + slewed;
		now->tv_sec = ns / 1000000000;
		now->tv_nsec = ns % 1000000000;
	}
	return r;
}

int gettimeofday(struct timeval *now, void *zone)
{
	struct timespec exact;
	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &exact) != 0)
		return -1;
	now->tv_sec = exact.tv_sec;
	now->tv_usec = exact.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *out)
{
	struct timespec exact;
	clock_gettime(CLOCK_REALTIME, &exact);
	if (out)
		*out = exact.tv_sec;
	return exact.tv_sec;
}
