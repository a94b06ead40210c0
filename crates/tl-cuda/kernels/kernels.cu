// Kernels of TurboLoader. The same text is CUDA C++ for the device (kernels.ptx is made of it by
// `cargo xtask ptx`) and C for the emulated driver of the tests, emulator.c.
//
// One thread makes one item, without barriers, shared memory or operations of warps, and all
// arithmetic is on integers. So the emulated driver may run the threads one after the other, and
// both give the same bits.

#ifndef KERNEL
#define KERNEL(name, type, argument) extern "C" __global__ void name(type argument)
#define DEVICE static __device__ __forceinline__
#define CONSTANT static __device__ const
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")
// A load of memory that nobody writes while the kernel runs.
#define LOAD(address) __ldg(address)
#define SWAPPED(word) __byte_perm(word, 0, 0x0123)
// The 32 bits of two words after the first `count`, which is less than 32.
#define FUNNEL(high, low, count) __funnelshift_l(low, high, count)
#endif

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// Bytes that are stored at once.
typedef struct {
    u64 low, high;
} Chunk;

#ifdef __CUDACC__
DEVICE void store(void *target, u64 low, u64 high) {
    *(ulonglong2 *)target = make_ulonglong2(low, high);
}
DEVICE Chunk load(const void *source) {
    ulonglong2 both = __ldg((const ulonglong2 *)source);
    Chunk chunk = {both.x, both.y};
    return chunk;
}
#else
DEVICE void store(void *target, u64 low, u64 high) {
    Chunk chunk = {low, high};
    *(Chunk *)target = chunk;
}
DEVICE Chunk load(const void *source) {
    return *(const Chunk *)source;
}
#endif

// Numbers that a thread writes at once: 16 bytes of them, so that the threads of a warp write lines.
#define GROUP(number) (16 / sizeof(number))

// The argument of the kernels that convert batches; `Conversion` in kernels.rs.
typedef struct {
    // Interleaved red, green and blue of 8 bits, image after image.
    const u8 *source;
    void *target;
    // The number of every sample, for red, for green and for blue.
    const void *table;
    // Pixels of an image, or numbers of the whole batch.
    u32 count;
} Convert;

// Reads the samples of a group, `words` of 4 bytes from a multiple of 4 on.
DEVICE void read_words(const u8 *source, u32 *samples, u32 words) {
    const u32 *from = (const u32 *)source;
    for (u32 word = 0; word < words; word++) samples[word] = LOAD(from + word);
}

DEVICE u32 sample_of(const u32 *samples, u32 place) {
    return samples[place / 4] >> (place % 4 * 8) & 255;
}

// Writes the numbers of a group, `each` to 8 bytes.
#define WRITE_GROUP(number, target, values)                                                        \
    do {                                                                                           \
        const u32 each = GROUP(number) / 2;                                                        \
        u64 low = 0, high = 0;                                                                     \
        for (u32 i = 0; i < each; i++) {                                                           \
            low |= (u64)(values)[i] << (8 * sizeof(number) * i);                                   \
            high |= (u64)(values)[each + i] << (8 * sizeof(number) * i);                           \
        }                                                                                          \
        store(target, low, high);                                                                  \
    } while (0)

// Converts the pixels of a batch to planes: a thread makes a group of pixels, and the rows of the
// grid are the images. Images whose pixels do not fill groups are not aligned, and their numbers are
// read and written one by one.
#define PLANAR(name, number)                                                                       \
    KERNEL(name, Convert, convert) {                                                               \
        u32 first = (blockIdx.x * blockDim.x + threadIdx.x) * GROUP(number);                       \
        if (first >= convert.count) return;                                                        \
        u64 image = (u64)blockIdx.y * convert.count * 3;                                           \
        const u8 *source = convert.source + image + 3 * (u64)first;                                \
        number *target = (number *)convert.target + image + first;                                 \
        const number *table = (const number *)convert.table;                                       \
        if (convert.count % GROUP(number) == 0) {                                                  \
            u32 samples[3 * GROUP(number) / 4];                                                    \
            read_words(source, samples, 3 * GROUP(number) / 4);                                    \
            for (u32 channel = 0; channel < 3; channel++) {                                        \
                number values[GROUP(number)];                                                      \
                for (u32 i = 0; i < GROUP(number); i++) {                                          \
                    values[i] = LOAD(table + 256 * channel + sample_of(samples, 3 * i + channel)); \
                }                                                                                  \
                WRITE_GROUP(number, target + (u64)channel * convert.count, values);                \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (u32 i = 0; i < GROUP(number) && first + i < convert.count; i++) {                     \
            for (u32 channel = 0; channel < 3; channel++) {                                        \
                u32 sample = LOAD(source + 3 * i + channel);                                       \
                target[(u64)channel * convert.count + i] = LOAD(table + 256 * channel + sample);   \
            }                                                                                      \
        }                                                                                          \
    }

PLANAR(planar_8, u8)
PLANAR(planar_16, u16)
PLANAR(planar_32, u32)

// Converts the pixels of a batch and leaves their order: a thread makes a group of numbers.
#define PACKED(name, number)                                                                       \
    KERNEL(name, Convert, convert) {                                                               \
        u32 first = (blockIdx.x * blockDim.x + threadIdx.x) * GROUP(number);                       \
        if (first >= convert.count) return;                                                        \
        const u8 *source = convert.source + first;                                                 \
        number *target = (number *)convert.target + first;                                         \
        const number *table = (const number *)convert.table;                                       \
        u32 phase = first % 3;                                                                     \
        if (first + GROUP(number) <= convert.count) {                                              \
            u32 samples[GROUP(number) / 4];                                                        \
            read_words(source, samples, GROUP(number) / 4);                                        \
            number values[GROUP(number)];                                                          \
            for (u32 i = 0; i < GROUP(number); i++) {                                              \
                u32 channel = (phase + i) % 3;                                                     \
                values[i] = LOAD(table + 256 * channel + sample_of(samples, i));                   \
            }                                                                                      \
            WRITE_GROUP(number, target, values);                                                   \
            return;                                                                                \
        }                                                                                          \
        for (u32 i = 0; first + i < convert.count; i++) {                                          \
            u32 channel = (phase + i) % 3;                                                         \
            target[i] = LOAD(table + 256 * channel + LOAD(source + i));                            \
        }                                                                                          \
    }

PACKED(packed_16, u16)
PACKED(packed_32, u32)

// Erasing: rectangles of converted images get other numbers. A thread writes one number; the rows of
// the grid are the rectangles, no two of which are in one image.

// A rectangle; `Rectangle` in erasures.rs.
typedef struct {
    // Its image in the batch.
    u32 image;
    u32 x, y, width, height;
    // The place of its numbers, in bytes: one for each channel, or those of its planes.
    u32 numbers;
    u32 is_color;
    u32 unused;
} Rectangle;

// The argument of the kernels that erase; `EraseArguments` in conversion.rs.
typedef struct {
    const Rectangle *rectangles;
    const u8 *numbers;
    void *target;
    // The size of the images.
    u32 width, height;
    u32 is_planar;
} Erase;

#define ERASE(name, number)                                                                        \
    KERNEL(name, Erase, erase) {                                                                   \
        const Rectangle *rectangle = erase.rectangles + blockIdx.y;                                \
        u32 place = blockIdx.x * blockDim.x + threadIdx.x;                                         \
        u32 area = rectangle->width * rectangle->height;                                           \
        if (place >= 3 * area) return;                                                             \
        u32 channel = place / area;                                                                \
        u32 pixel = place % area;                                                                  \
        u64 x = rectangle->x + pixel % rectangle->width;                                           \
        u64 y = rectangle->y + pixel / rectangle->width;                                           \
        const number *numbers = (const number *)(erase.numbers + rectangle->numbers);              \
        number value = LOAD(numbers + (rectangle->is_color ? channel : place));                    \
        u64 pixels = (u64)erase.width * erase.height;                                              \
        u64 at = y * erase.width + x;                                                              \
        at = erase.is_planar ? channel * pixels + at : 3 * at + channel;                           \
        ((number *)erase.target)[3 * pixels * rectangle->image + at] = value;                      \
    }

ERASE(erase_8, u8)
ERASE(erase_16, u16)
ERASE(erase_32, u32)

#include "decode.cu"
