/* A flush to the disk at a fixed price.
 *
 * Preloaded, it answers fsync and fdatasync after FIXED_FSYNC_US microseconds, and flushes nothing. What a program
 * measures then depends on how often it flushes, not on what else the disk has to do. For measuring only: with it,
 * nothing survives a loss of power.
 *
 * It sleeps, as a process that waits for a disk does, until shortly before the end, and spins for the rest: a sleep
 * alone ends up to SPIN_NS late.
 *
 *     cc -O2 -shared -fPIC -o fixed_fsync.so bench/fixed_fsync.c
 *     FIXED_FSYNC_US=500 LD_PRELOAD=./fixed_fsync.so program
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

enum { DEFAULT_US = 500, NS_PER_US = 1000, NS_PER_S = 1000000000, SPIN_NS = 40000 };

static long price_ns(void)
{
    static long known = 0; /* two threads may both read the environment: they find the same */
    if (known == 0) {
        const char *text = getenv("FIXED_FSYNC_US");
        long us = text ? strtol(text, NULL, 10) : 0;
        known = (us > 0 ? us : DEFAULT_US) * NS_PER_US;
    }
    return known;
}

static struct timespec later(struct timespec from, long ns)
{
    from.tv_nsec += ns;
    from.tv_sec += from.tv_nsec / NS_PER_S;
    from.tv_nsec %= NS_PER_S;
    return from;
}

static int before(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

static int pay(int fd)
{
    struct timespec now, end, wake;
    if (fcntl(fd, F_GETFD) == -1)
        return -1; /* errno says why, as it would for fsync */
    clock_gettime(CLOCK_MONOTONIC, &now);
    end = later(now, price_ns());
    if (price_ns() > SPIN_NS) {
        prctl(PR_SET_TIMERSLACK, 1UL); /* else a sleep may end 50 us late */
        wake = later(now, price_ns() - SPIN_NS);
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, NULL) == EINTR)
            ;
    }
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while (before(now, end));
    return 0;
}

int fsync(int fd) { return pay(fd); }
int fdatasync(int fd) { return pay(fd); }
