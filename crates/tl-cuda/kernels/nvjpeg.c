// A libnvjpeg for tests without a GPU: the functions that nvjpeg.rs calls, over memory of the host. It
// decodes nothing: an image has the size of the file's frame header, and each byte of its interleaved
// pixels is that of the file at its place, counted around. Macros make the library misbehave:
//
//   -DMAJOR=13               the version that it reports
//   -DFAILING=\"nvjpegCreateEx\"  a function that returns
//   -DSTATUS=7                this status
//   -DREFUSED=1000            bytes of files that are refused when they are decoded

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#ifndef MAJOR
#define MAJOR 12
#endif
#ifndef FAILING
#define FAILING ""
#endif
#ifndef STATUS
#define STATUS 7
#endif
#ifndef REFUSED
#define REFUSED 0
#endif

#define EXPORT __attribute__((visibility("default")))
#define BEGIN                                                                                      \
    if (!strcmp(__func__, FAILING)) return STATUS;

typedef struct {
    unsigned char *channel[4];
    size_t pitch[4];
} Image;

enum {
    SUCCESS = 0,
    INVALID_PARAMETER = 2,
    BAD_JPEG = 3,
    JPEG_NOT_SUPPORTED = 4,
    ALLOCATOR_FAILURE = 5
};

// A decoder's state, which one thread uses at a time.
typedef struct {
    int batch, is_planar;
} State;

static int handle;

EXPORT int nvjpegGetProperty(int property, int *value) {
    BEGIN
    const int version[] = {MAJOR, 4, 7};
    if (property < 0 || property > 2) return INVALID_PARAMETER;
    *value = version[property];
    return SUCCESS;
}

EXPORT int nvjpegCreateEx(int backend, void *device, void *pinned, unsigned flags, void **made) {
    BEGIN
    if (backend || device || pinned || flags) return INVALID_PARAMETER;
    *made = &handle;
    handle++;
    return SUCCESS;
}

EXPORT int nvjpegDestroy(void *made) {
    BEGIN
    return made == &handle && handle-- > 0 ? SUCCESS : INVALID_PARAMETER;
}

EXPORT int nvjpegJpegStateCreate(void *made, void **of_jpeg) {
    BEGIN
    if (made != &handle || handle <= 0) return INVALID_PARAMETER;
    *of_jpeg = calloc(1, sizeof(State));
    return *of_jpeg ? SUCCESS : ALLOCATOR_FAILURE;
}

EXPORT int nvjpegJpegStateDestroy(void *of_jpeg) {
    BEGIN
    free(of_jpeg);
    return SUCCESS;
}

EXPORT int nvjpegGetImageInfo(void *made, const unsigned char *data, size_t length, int *components,
                              int *subsampling, int *widths, int *heights) {
    BEGIN
    if (made != &handle || handle <= 0) return INVALID_PARAMETER;
    if (length < 4 || data[0] != 0xFF || data[1] != 0xD8) return BAD_JPEG;
    for (size_t at = 2; at + 9 < length && data[at] == 0xFF;) {
        if (data[at + 1] == 0xFF) {
            at++;
            continue;
        }
        if (data[at + 1] == 0xC2) return JPEG_NOT_SUPPORTED;
        if (data[at + 1] == 0xC0 || data[at + 1] == 0xC1) {
            *components = data[at + 9];
            *subsampling = 0;
            for (int one = 0; one < 4; one++) {
                heights[one] = one < *components ? data[at + 5] << 8 | data[at + 6] : 0;
                widths[one] = one < *components ? data[at + 7] << 8 | data[at + 8] : 0;
            }
            return SUCCESS;
        }
        at += 2 + (data[at + 2] << 8 | data[at + 3]);
    }
    return BAD_JPEG;
}

EXPORT int nvjpegDecodeBatchedInitialize(void *made, void *of_jpeg, int size, int threads,
                                         int format) {
    BEGIN
    if (made != &handle || !of_jpeg || size <= 0 || threads <= 0) return INVALID_PARAMETER;
    State *state = of_jpeg;
    state->batch = size;
    state->is_planar = format == 3;
    return format == 5 || state->is_planar ? SUCCESS : INVALID_PARAMETER;
}

EXPORT int nvjpegDecodeBatched(void *made, void *of_jpeg, const unsigned char *const *data,
                               const size_t *lengths, Image *targets, void *stream) {
    BEGIN
    if (made != &handle || !of_jpeg || !stream) return INVALID_PARAMETER;
    const State *state = of_jpeg;
    int is_planar = state->is_planar;
    for (int one = 0; one < state->batch; one++) {
        int components, subsampling, widths[4], heights[4];
        int status = nvjpegGetImageInfo(made, data[one], lengths[one], &components, &subsampling,
                                        widths, heights);
        if (status) return status;
        size_t width = (size_t)widths[0], height = (size_t)heights[0];
        if (lengths[one] == REFUSED) return BAD_JPEG;
        if (is_planar ? targets[one].pitch[0] < width : targets[one].pitch[0] != 3 * width)
            return INVALID_PARAMETER;
        for (size_t at = 0; at < 3 * width * height; at++) {
            size_t channel = is_planar ? at % 3 : 0, row = at / (3 * width), rest = at % (3 * width);
            size_t column = is_planar ? rest / 3 : rest;
            targets[one].channel[channel][row * targets[one].pitch[channel] + column] =
                data[one][at % lengths[one]];
        }
    }
    return SUCCESS;
}
