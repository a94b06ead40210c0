// A driver for tests without a GPU: the functions of libcuda.so.1 that driver.rs calls, over memory of
// the host, and the kernels of kernels.cu compiled as C.
//
// Streams are as lazy as the real ones may be: what is enqueued runs only when somebody waits for it.
// So a missing wait shows every time, and not by luck. An event stands for the work before it on its
// stream; waiting for one first runs that work. Macros make the driver misbehave:
//
//   -DVERSION=10020             the version that it reports
//   -DDEVICES=0                 the number of devices
//   -DMEMORY=1048576            the bytes of a device
//   -DFAILING=\"cuEventRecord\"  a function that returns
//   -DCODE=700                  this code
//   -DCALLS=2                   after so many calls
//   -DHIDES=1                   CUDA_VISIBLE_DEVICES counts; others are there whatever it is
//   -DCAPTURING=1               somebody captures a stream, in the mode that forbids most to all;
//                               nobody can wait for the whole context

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    unsigned x, y, z;
} Place;

static Place blockIdx, blockDim, threadIdx;

// The wrapper takes a copy of the argument, as it is enqueued.
#define KERNEL(name, type, argument)                                                               \
    static void name##_of(type argument);                                                          \
    static void name(const void *memory) {                                                         \
        name##_of(*(const type *)memory);                                                          \
    }                                                                                              \
    static void name##_of(type argument)
#define DEVICE static inline
#define CONSTANT static const
#define UNROLL
#define ROLLED
#define LOAD(address) (*(address))
#define SWAPPED(word) __builtin_bswap32(word)
#define FUNNEL(high, low, count) ((high) << (count) | (low) >> 1 >> (31 - (count)))

#include "kernels.cu"

#ifndef VERSION
#define VERSION 13000
#endif
#ifndef DEVICES
#define DEVICES 1
#endif
#ifndef MEMORY
#define MEMORY (1LL << 32)
#endif
#ifndef FAILING
#define FAILING ""
#endif
#ifndef CODE
#define CODE 700
#endif
#ifndef CALLS
#define CALLS 0
#endif

#ifndef HIDES
#define HIDES 0
#endif
#ifndef CAPTURING
#define CAPTURING 0
#endif

#define EXPORT __attribute__((visibility("default")))

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    NOT_FOUND = 500,
    CAPTURE_UNSUPPORTED = 900,
};

typedef struct Stream Stream;

// A kernel, and the bytes of its argument.
typedef struct {
    const char *name;
    void (*run)(const void *argument);
    size_t bytes;
} Kernel;

typedef struct {
    Stream *stream;
    u64 number;
} Event;

// What runs in one go: a copy, a kernel, or a wait for work of another stream.
typedef struct Work {
    struct Work *next;
    enum { COPY, LAUNCH, WAIT } kind;
    char *to;
    const char *from;
    size_t bytes;
    const Kernel *kernel;
    u64 argument[8];
    Place grid, block;
    Event event;
} Work;

struct Stream {
    Stream *next;
    // The legacy stream waits for it.
    int is_blocking;
    Work *first, *last;
    // Work that was enqueued, and work that has run.
    u64 enqueued, done;
};

typedef struct Allocation {
    struct Allocation *next;
    char *start;
    size_t bytes;
} Allocation;

static pthread_mutex_t lock;
static Stream legacy;
static Stream *streams;
static __thread Stream *per_thread;
static Allocation *allocations;
static size_t in_use;
static __thread int is_current;
// Of captures: 0 is global, 2 is relaxed.
static __thread int mode;
static int contexts[DEVICES + 1];
static int retained;

// True if a capture of somebody keeps this thread from calls such as allocations.
static int is_forbidden(void) {
    return CAPTURING && mode != 2;
}

static int failure(const char *name) {
    static int calls;
    if (strcmp(name, FAILING)) return SUCCESS;
    return __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED) >= CALLS ? CODE : SUCCESS;
}

#define BEGIN                                                                                      \
    int failed = failure(__func__);                                                                \
    if (failed) return failed;                                                                     \
    pthread_mutex_lock(&lock);
#define END(result)                                                                                \
    do {                                                                                           \
        int end = (result);                                                                        \
        pthread_mutex_unlock(&lock);                                                               \
        return end;                                                                                \
    } while (0)

__attribute__((constructor)) static void start(void) {
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &recursive);
}

static Stream *made_stream(int is_blocking) {
    Stream *stream = calloc(1, sizeof *stream);
    stream->is_blocking = is_blocking;
    stream->next = streams;
    streams = stream;
    return stream;
}

static Stream *stream_of(Stream *handle) {
    if ((uintptr_t)handle <= 1) return &legacy;
    if ((uintptr_t)handle != 2) return handle;
    if (!per_thread) per_thread = made_stream(1);
    return per_thread;
}

static void run(Work *work);

// Runs the work of a stream up to the one with this number.
static void run_until(Stream *stream, u64 number) {
    while (stream->first && stream->done < number) {
        Work *work = stream->first;
        stream->first = work->next;
        if (!stream->first) stream->last = NULL;
        stream->done++;
        run(work);
        free(work);
    }
}

static void run(Work *work) {
    switch (work->kind) {
    case COPY: memmove(work->to, work->from, work->bytes); break;
    case WAIT: run_until(work->event.stream, work->event.number); break;
    case LAUNCH:
        blockDim = work->block;
        for (blockIdx.y = 0; blockIdx.y < work->grid.y; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < work->grid.x; blockIdx.x++)
                for (threadIdx.x = 0; threadIdx.x < work->block.x; threadIdx.x++)
                    work->kernel->run(work->argument);
        break;
    }
}

static int enqueue(Stream *handle, Work wanted) {
    Stream *stream = stream_of(handle);
    Work *work = malloc(sizeof *work);
    if (!work) return OUT_OF_MEMORY;
    *work = wanted;
    work->next = NULL;
    if (stream->last) stream->last->next = work;
    else stream->first = work;
    stream->last = work;
    stream->enqueued++;
    return SUCCESS;
}

// True if the bytes lie in one allocation of the device.
static int is_inside(const char *start, size_t bytes) {
    for (Allocation *one = allocations; one; one = one->next) {
        if (start >= one->start && start + bytes <= one->start + one->bytes) return 1;
    }
    return 0;
}

EXPORT int cuInit(unsigned flags) {
    BEGIN
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (flags) END(INVALID_VALUE);
    if ((HIDES && visible && !*visible) || DEVICES == 0) END(NO_DEVICE);
    END(SUCCESS);
}

EXPORT int cuDriverGetVersion(int *version) {
    BEGIN
    *version = VERSION;
    END(SUCCESS);
}

EXPORT int cuDeviceGetCount(int *count) {
    BEGIN
    *count = DEVICES;
    END(SUCCESS);
}

EXPORT int cuDeviceGet(int *device, int ordinal) {
    BEGIN
    if (ordinal < 0 || ordinal >= DEVICES) END(INVALID_DEVICE);
    *device = ordinal;
    END(SUCCESS);
}

EXPORT int cuDeviceGetName(char *name, int length, int device) {
    BEGIN
    snprintf(name, (size_t)length, "emulator %d", device);
    END(SUCCESS);
}

EXPORT int cuDevicePrimaryCtxRetain(void **context, int device) {
    BEGIN
    *context = &contexts[device];
    retained++;
    END(SUCCESS);
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
    BEGIN
    (void)device;
    END(retained-- > 0 ? SUCCESS : INVALID_CONTEXT);
}

EXPORT int cuCtxPushCurrent_v2(void *context) {
    BEGIN
    if ((int *)context < contexts || (int *)context >= contexts + DEVICES) END(INVALID_CONTEXT);
    is_current++;
    END(SUCCESS);
}

EXPORT int cuCtxPopCurrent_v2(void **context) {
    BEGIN
    *context = contexts;
    END(is_current-- > 0 ? SUCCESS : INVALID_CONTEXT);
}

EXPORT int cuThreadExchangeStreamCaptureMode(int *other) {
    int before = mode;
    mode = *other;
    *other = before;
    return SUCCESS;
}

EXPORT int cuStreamIsCapturing(Stream *stream, int *status) {
    BEGIN
    (void)stream;
    *status = 0;
    END(SUCCESS);
}

EXPORT int cuCtxSynchronize(void) {
    BEGIN
    // In any mode: it would wait for the stream that is captured.
    if (CAPTURING) END(CAPTURE_UNSUPPORTED);
    run_until(&legacy, legacy.enqueued);
    for (Stream *one = streams; one; one = one->next) run_until(one, one->enqueued);
    END(is_current ? SUCCESS : INVALID_CONTEXT);
}

EXPORT int cuMemGetInfo_v2(size_t *available, size_t *total) {
    BEGIN
    *total = (size_t)MEMORY;
    *available = *total - in_use;
    END(is_current ? SUCCESS : INVALID_CONTEXT);
}

EXPORT int cuMemAlloc_v2(char **address, size_t bytes) {
    BEGIN
    if (!is_current) END(INVALID_CONTEXT);
    if (is_forbidden()) END(CAPTURE_UNSUPPORTED);
    if (bytes > (size_t)MEMORY - in_use) END(OUT_OF_MEMORY);
    Allocation *one = malloc(sizeof *one);
    *one = (Allocation){allocations, aligned_alloc(256, (bytes + 255) / 256 * 256), bytes};
    // As on a device, nobody has cleared it.
    memset(one->start, 0xA5, bytes);
    allocations = one;
    in_use += bytes;
    *address = one->start;
    END(SUCCESS);
}

EXPORT int cuMemFree_v2(char *address) {
    BEGIN
    for (Allocation **one = &allocations; *one; one = &(*one)->next) {
        if ((*one)->start != address) continue;
        Allocation *gone = *one;
        *one = gone->next;
        in_use -= gone->bytes;
        free(gone->start);
        free(gone);
        END(is_current ? SUCCESS : INVALID_CONTEXT);
    }
    END(INVALID_VALUE);
}

EXPORT int cuMemHostAlloc(void **address, size_t bytes, unsigned flags) {
    BEGIN
    (void)flags;
    if (is_forbidden()) END(CAPTURE_UNSUPPORTED);
    *address = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    memset(*address, 0xA5, bytes);
    END(is_current ? SUCCESS : INVALID_CONTEXT);
}

EXPORT int cuMemFreeHost(void *address) {
    BEGIN
    if (is_forbidden()) END(CAPTURE_UNSUPPORTED);
    free(address);
    END(is_current ? SUCCESS : INVALID_CONTEXT);
}

EXPORT int cuMemcpyHtoDAsync_v2(char *to, const char *from, size_t bytes, Stream *stream) {
    BEGIN
    if (!is_current) END(INVALID_CONTEXT);
    if (!is_inside(to, bytes)) END(INVALID_VALUE);
    END(enqueue(stream, (Work){.kind = COPY, .to = to, .from = from, .bytes = bytes}));
}

EXPORT int cuMemcpyDtoHAsync_v2(char *to, const char *from, size_t bytes, Stream *stream) {
    BEGIN
    if (!is_current) END(INVALID_CONTEXT);
    if (!is_inside(from, bytes)) END(INVALID_VALUE);
    END(enqueue(stream, (Work){.kind = COPY, .to = to, .from = from, .bytes = bytes}));
}

EXPORT int cuStreamCreate(Stream **stream, unsigned flags) {
    BEGIN
    *stream = made_stream(!flags);
    END(is_current ? SUCCESS : INVALID_CONTEXT);
}

EXPORT int cuStreamDestroy_v2(Stream *stream) {
    BEGIN
    // Events of it may still be waited for, so the memory stays.
    run_until(stream, stream->enqueued);
    END(SUCCESS);
}

EXPORT int cuStreamSynchronize(Stream *handle) {
    BEGIN
    Stream *stream = stream_of(handle);
    run_until(stream, stream->enqueued);
    END(SUCCESS);
}

EXPORT int cuStreamWaitEvent(Stream *stream, Event *event, unsigned flags) {
    BEGIN
    (void)flags;
    if (!event->stream) END(SUCCESS);
    END(enqueue(stream, (Work){.kind = WAIT, .event = *event}));
}

EXPORT int cuEventCreate(Event **event, unsigned flags) {
    BEGIN
    (void)flags;
    *event = calloc(1, sizeof **event);
    END(is_current ? SUCCESS : INVALID_CONTEXT);
}

EXPORT int cuEventDestroy_v2(Event *event) {
    BEGIN
    free(event);
    END(SUCCESS);
}

EXPORT int cuEventRecord(Event *event, Stream *handle) {
    BEGIN
    Stream *stream = stream_of(handle);
    for (Stream *one = streams; stream == &legacy && one; one = one->next) {
        if (one->is_blocking)
            enqueue(&legacy, (Work){.kind = WAIT, .event = {one, one->enqueued}});
    }
    *event = (Event){stream, stream->enqueued};
    END(is_current ? SUCCESS : INVALID_CONTEXT);
}

EXPORT int cuEventSynchronize(Event *event) {
    BEGIN
    if (event->stream) run_until(event->stream, event->number);
    END(SUCCESS);
}

EXPORT int cuEventElapsedTime(float *milliseconds, Event *start, Event *end) {
    BEGIN
    (void)start;
    (void)end;
    *milliseconds = 0.001f;
    END(SUCCESS);
}

EXPORT int cuModuleLoadData(void **module, const char *image) {
    BEGIN
    *module = contexts;
    END(strstr(image, ".version 7.0") ? SUCCESS : INVALID_VALUE);
}

EXPORT int cuModuleUnload(void *module) {
    BEGIN
    (void)module;
    END(SUCCESS);
}

static void spin(const void *nanos) {
    (void)nanos;
}

static const Kernel kernels[] = {
    {"planar_8", planar_8, sizeof(Convert)},
    {"planar_16", planar_16, sizeof(Convert)},
    {"planar_32", planar_32, sizeof(Convert)},
    {"packed_16", packed_16, sizeof(Convert)},
    {"packed_32", packed_32, sizeof(Convert)},
    {"erase_8", erase_8, sizeof(Erase)},
    {"erase_16", erase_16, sizeof(Erase)},
    {"erase_32", erase_32, sizeof(Erase)},
    {"codes", codes, sizeof(Decode)},
    {"entropy", entropy, sizeof(Decode)},
    {"transform", transform, sizeof(Decode)},
    {"colours", colours, sizeof(Decode)},
    {"resize_first", resize_first, sizeof(Decode)},
    {"resize_second", resize_second, sizeof(Decode)},
    {"place", place, sizeof(Decode)},
    {"spin", spin, sizeof(u64)},
};

EXPORT int cuModuleGetFunction(const Kernel **function, void *module, const char *name) {
    BEGIN
    (void)module;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        if (strcmp(kernels[i].name, name)) continue;
        *function = kernels + i;
        END(SUCCESS);
    }
    END(NOT_FOUND);
}

EXPORT int cuLaunchKernel(const Kernel *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                          Stream *stream, void **arguments, void **extra) {
    BEGIN
    if (!is_current) END(INVALID_CONTEXT);
    if (!grid_x || !grid_y || grid_y > 65535 || grid_z != 1 || block_y != 1 || block_z != 1)
        END(INVALID_VALUE);
    if (shared || extra) END(INVALID_VALUE);
    Work work = {.kind = LAUNCH, .kernel = kernel};
    memcpy(work.argument, arguments[0], kernel->bytes);
    work.grid = (Place){grid_x, grid_y, 1};
    work.block = (Place){block_x, 1, 1};
    END(enqueue(stream, work));
}

EXPORT int cuGetErrorName(int code, const char **name) {
    switch (code) {
    case OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case NO_DEVICE: *name = "CUDA_ERROR_NO_DEVICE"; break;
    case INVALID_CONTEXT: *name = "CUDA_ERROR_INVALID_CONTEXT"; break;
    case 3: *name = "CUDA_ERROR_NOT_INITIALIZED"; break;
    case 700: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
    default: *name = "CUDA_ERROR"; break;
    }
    return SUCCESS;
}
