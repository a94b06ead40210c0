// Kernels that decode JPEG images from the parts that the host has prepared (picture.rs). A row of the
// grid is an image, or one of its planes. All offsets are bytes: from the image's part of the payload,
// or of the scratch memory, where each kernel leaves what the next one reads. The host has checked
// that everything lies there; the entropy-coded data alone is not to be trusted.

#define PLANES 3
#define SIDE 8
#define COEFFICIENTS 64
// Index bits of a look-up table of Huffman codes.
#define TABLE_BITS 10
// Fraction bits of the weights of a resize.
#define WEIGHT_BITS 22
// No end is known for a row.
#define UNKNOWN 0xFFFFFFFFu

typedef short i16;

// The rest of this file has the names of descriptor.rs.

// The taps of an axis of a resize: for each of `count` results the first sample, and the weights
// tap by tap.
typedef struct {
    u32 count, taps, starts, weights;
} Axis;

// A resize of a plane in two passes.
typedef struct {
    Axis columns, rows;
    // The samples read: their first one at a multiple of 4.
    u32 source, source_stride, source_width, source_height;
    u32 between, between_stride;
    u32 result, result_stride;
    u32 is_vertical_first;
} Resize;

// A component of the image: its blocks and the plane of their samples.
typedef struct {
    // Sparse blocks are at `blocks`; of others this is the place of the first one in an MCU.
    u32 quantizer, blocks;
    u32 columns, rows;
    // Samples of a block, across and down.
    u32 side;
    u32 plane, stride;
    // The samples that are there, in those of the component.
    u32 left, top, right, bottom;
    // 0 repeats samples; 1 is the triangle filter across, 2 down, 3 both ways.
    u32 filter;
    // Pixels of a sample.
    u32 across, down;
    // Its blocks of an MCU.
    u32 mcu_across, mcu_down;
} Component;

// The pixels that upsampling and conversion make.
typedef struct {
    // The first one, in those of the image; `left` is a multiple of 4.
    u32 left, top;
    u32 stride, height;
    // The planes of red, green and blue.
    u32 planes[PLANES];
} Pixels;

// The result around the window of the resize.
typedef struct {
    u32 width, height;
    u32 left, top, window_width, window_height;
    u32 fill[PLANES];
    u32 flip, flip_vertical;
} Frame;

// Entropy-coded rows. Their coefficients are in the order of the scan, those of a block in zigzag
// order.
typedef struct {
    // By block of an MCU: the component of the scan, from bit 8 on the code of its first coefficient,
    // and from bit 16 on that of the others.
    u32 slots, slot_count;
    u32 rows, row_count;
    u32 codes, code_count, tables;
    u32 bytes;
    u32 coefficients;
    u32 skipped, wanted;
    // Rows are decoded to their ends, which have to be the known ones.
    u32 is_to_end;
    // Rows that a warp decodes.
    u32 lanes;
} Entropy;

typedef struct {
    u64 payload, scratch, target;
    // Components, and planes that are resized.
    u32 count;
    // The samples are luma and colour differences.
    u32 is_ycc;
    // Rows of the coefficients that are there; entropy-coded rows otherwise.
    u32 is_sparse, rows;
    Component components[PLANES];
    Pixels pixels;
    Resize resizes[PLANES];
    Frame frame;
    Entropy entropy;
} Picture;

// The data of an MCU row.
typedef struct {
    u32 at, len, bit, end;
    i16 predictors[4], end_predictors[4];
} Row;

// A Huffman code; `HuffmanCodes` in parts.rs.
typedef struct {
    u32 limits[16], offsets[16];
    u8 symbols[256];
} Codes;

// The argument of these kernels.
typedef struct {
    const Picture *pictures;
    const u8 *payload;
    u8 *scratch;
    // The results: interleaved red, green and blue of 8 bits.
    u8 *target;
    // By image: 1 if its rows are not what their index says.
    u32 *faults;
} Decode;

#define PAYLOAD(type, offset) ((const type *)(decode.payload + picture->payload + (offset)))
#define SCRATCH(type, offset) ((type *)(decode.scratch + picture->scratch + (offset)))
// Threads that run together.
#define WARP 32
#define ITEM (blockIdx.x * blockDim.x + threadIdx.x)

DEVICE u32 less(u32 a, u32 b) {
    return a < b ? a : b;
}

DEVICE u32 more(u32 a, u32 b) {
    return a < b ? b : a;
}

DEVICE int clamp(int value, int low, int high) {
    return value < low ? low : value > high ? high : value;
}

// The length of the code that 16 bits begin with, less 1.
DEVICE u32 code_length(const Codes *codes, u32 bits) {
    u32 shorter = 0;
    UNROLL for (u32 i = 0; i < 16; i++) shorter += bits >= LOAD(codes->limits + i);
    return shorter;
}

DEVICE u32 symbol_of(const Codes *codes, u32 bits, u32 shorter) {
    u32 place = LOAD(codes->offsets + shorter) + (bits >> (15 - shorter));
    return LOAD(codes->symbols + (place & 255));
}

// An entry of a look-up table is a decoded symbol: bits, coefficients that it advances by, and from bit
// 16 on the value of the last one. With PARTIAL there is only the length of the code, and from bit 8
// on its symbol; a longer code has the length 0. Another symbol may follow from bit 32 on, whose bits
// are those of both.
#define PARTIAL 0x80u

// The entry of a code that `top` begins with.
DEVICE u32 decoded(u32 symbol, u32 length, u32 top) {
    u32 size = symbol & 15, run = symbol >> 4;
    u32 extra = top << length >> (31 - size) >> 1;
    int value = (int)extra - (extra < 1u << size >> 1 ? (1 << size) - 1 : 0);
    u32 advance = size || run == 15 ? run + 1 : COEFFICIENTS;
    return (u32)value << 16 | advance << 8 | (length + size);
}

// The entry of the symbol that 16 bits begin with, if it is in the index.
DEVICE u32 entry_of(const Codes *codes, u32 bits) {
    u32 length = code_length(codes, bits) + 1;
    if (length > TABLE_BITS) return PARTIAL;
    u32 symbol = symbol_of(codes, bits, length - 1);
    int is_whole = length + (symbol & 15) <= TABLE_BITS;
    return is_whole ? decoded(symbol, length, bits << 16) : symbol << 8 | PARTIAL | length;
}

// Expands the codes of an image to look-up tables by the next bits. A thread makes an entry.
KERNEL(codes, Decode, decode) {
    const Picture *picture = decode.pictures + blockIdx.y;
    const Entropy *entropy = &picture->entropy;
    u32 item = ITEM;
    if (item >> TABLE_BITS >= entropy->code_count) return;
    const Codes *codes = PAYLOAD(Codes, entropy->codes) + (item >> TABLE_BITS);
    u32 bits = (item & ((1 << TABLE_BITS) - 1)) << (16 - TABLE_BITS);
    u32 first = entry_of(codes, bits), second = PARTIAL;
    u32 taken = first & 31;
    if (!(first & PARTIAL)) second = entry_of(codes, bits << taken & 0xFFFF);
    if (second & PARTIAL || taken + (second & 31) > TABLE_BITS) second = 0;
    else second += taken;
    SCRATCH(u64, entropy->tables)[item] = (u64)second << 32 | first;
}

// The entry of what `top` begins with, for a partial one; 0 without a code.
DEVICE u32 completed(const Codes *codes, u32 entry, u32 top) {
    u32 length = entry & 31, symbol = entry >> 8;
    if (!length) {
        u32 bits = top >> 16;
        length = TABLE_BITS + 1;
        ROLLED while (length <= 16 && bits >= LOAD(codes->limits + length - 1)) length++;
        if (length > 16) return 0;
        symbol = symbol_of(codes, bits, length - 1);
    }
    return decoded(symbol, length, top);
}

// The first entry of a table that a slot names.
#define TABLE_OF(slot, shift) (((slot) >> (shift) & 255) << TABLE_BITS)

// Decodes the MCUs of a row in a thread, one entry in each round, so that the threads of a warp stay
// together. Coefficients after the last one of a block are in its place and end the block.
KERNEL(entropy, Decode, decode) {
    const Picture *picture = decode.pictures + blockIdx.y;
    const Entropy *entropy = &picture->entropy;
    u32 lane = threadIdx.x % WARP, item = ITEM / WARP * entropy->lanes + lane;
    if (lane >= entropy->lanes || item >= entropy->row_count) return;
    const Row *row = PAYLOAD(Row, entropy->rows) + item;
    u32 len = LOAD(&row->len);
    if (!len) {
        decode.faults[blockIdx.y] = 1;
        return;
    }
    const u32 *slots = PAYLOAD(u32, entropy->slots);
    const u64 *tables = SCRATCH(u64, entropy->tables);
    i16 *coefficients = SCRATCH(i16, entropy->coefficients);
    u32 slot_count = entropy->slot_count;

    // The words that the next bits are in, after `bit` others, and the one after them. The last word
    // of the row is repeated.
    const u32 *words = (const u32 *)(PAYLOAD(u8, entropy->bytes) + LOAD(&row->at));
    u32 last_word = (len - 1) / 4, taken = 2;
    u32 high = SWAPPED(LOAD(words)), low = SWAPPED(LOAD(words + less(1, last_word)));
    u32 ahead = LOAD(words + less(2, last_word)), bit = LOAD(&row->bit);

    int last_0 = LOAD(row->predictors), last_1 = LOAD(row->predictors + 1);
    int last_2 = LOAD(row->predictors + 2);
    // Blocks up to the end, and how many of these are stored. The first of them is at `block`.
    u32 wanted = entropy->wanted * slot_count;
    u32 left = wanted + entropy->skipped * slot_count;
    u32 block = COEFFICIENTS * (item * wanted + wanted - left);
    u32 at = 0;
    // The slot of this block and the table of its next symbol, and the slot of the next block.
    u32 slot = LOAD(slots), table = TABLE_OF(slot, 8);
    u32 next_number = slot_count > 1, next_slot = LOAD(slots + next_number);
    int is_wrong = 0;
    while (left) {
        u32 top = FUNNEL(high, low, bit);
        u64 both = LOAD(tables + (table + (top >> (32 - TABLE_BITS))));
        u32 entry = (u32)both, second = (u32)(both >> 32);
        if (entry & PARTIAL) {
            entry = completed(PAYLOAD(Codes, entropy->codes) + (table >> TABLE_BITS), entry, top);
            if (!entry) {
                is_wrong = 1;
                break;
            }
        }
        int value = (int)entry >> 16;
        u32 used = entry & 31, last = at;
        if (at) {
            last = less(at + (entry >> 8 & 127), COEFFICIENTS);
            // The second symbol is of the next block after the end of this one.
            second = last < COEFFICIENTS ? second : 0;
            at = less(last + (second >> 8 & 127), COEFFICIENTS);
            int following = (int)second >> 16;
            if (following && left <= wanted) coefficients[block + at - 1] = (i16)following;
            used = second ? second & 31 : used;
        } else {
            u32 component = slot & 255;
            value = (i16)(value + (component == 0 ? last_0 : component == 1 ? last_1 : last_2));
            last_0 = component == 0 ? value : last_0;
            last_1 = component == 1 ? value : last_1;
            last_2 = component > 1 ? value : last_2;
            last = at = 1;
            table = TABLE_OF(slot, 16);
            // Zeros are not stored later on.
            if (left <= wanted) {
                u8 *empty = (u8 *)(coefficients + block);
                UNROLL for (u32 i = 0; i < SIDE; i++) store(empty + 16 * i, 0, 0);
            }
        }
        if (value && left <= wanted) coefficients[block + last - 1] = (i16)value;
        bit += used;
        if (at == COEFFICIENTS) {
            at = 0;
            left--;
            block += COEFFICIENTS;
            slot = next_slot;
            table = TABLE_OF(slot, 8);
            next_number = next_number + 1 < slot_count ? next_number + 1 : 0;
            next_slot = LOAD(slots + next_number);
        }
        if (bit >= 32) {
            bit -= 32;
            high = low;
            low = SWAPPED(ahead);
            ahead = LOAD(words + less(++taken, last_word));
        }
    }
    u32 position = 32 * (taken - 2) + bit;
    is_wrong |= position > 8 * len;
    if (entropy->is_to_end && LOAD(&row->end) != UNKNOWN) {
        is_wrong |= position != LOAD(&row->end) || last_0 != LOAD(row->end_predictors);
        is_wrong |= last_1 != LOAD(row->end_predictors + 1) || last_2 != LOAD(row->end_predictors + 2);
    }
    if (is_wrong) decode.faults[blockIdx.y] = 1;
}

// The inverse transforms are those of libjpeg-turbo on x86, as definition.rs of tl-simd has them:
// products and sums of inputs modulo 2^16, other sums modulo 2^32, each pass saturated to 16 bits.
#define F_0_211 1730
#define F_0_298 2446
#define F_0_390 3196
#define F_0_509 4176
#define F_0_541 4433
#define F_0_601 4926
#define F_0_720 5906
#define F_0_765 6270
#define F_0_850 6967
#define F_0_899 7373
#define F_1_061 8697
#define F_1_175 9633
#define F_1_272 10426
#define F_1_451 11893
#define F_1_501 12299
#define F_1_847 15137
#define F_1_961 16069
#define F_2_053 16819
#define F_2_172 17799
#define F_2_562 20995
#define F_3_072 25172
#define F_3_624 29692

// Fraction bits of these, and of words between the passes.
#define CONST_BITS 13
#define PASS1_BITS 2

DEVICE u32 rotate(int a, int b, int of_a, int of_b) {
    return (u32)(a * of_a + b * of_b);
}

DEVICE int saturate(int value) {
    return clamp(value, -32768, 32767);
}

DEVICE int descale(u32 sum, u32 shift) {
    return (int)(sum + (1u << (shift - 1))) >> shift;
}

// The eight points of a one-dimensional transform, in the place of the words.
DEVICE void pass_8(int *words, u32 shift) {
    u32 sum = (u32)(i16)(words[0] + words[4]) << CONST_BITS;
    u32 difference = (u32)(i16)(words[0] - words[4]) << CONST_BITS;
    u32 outer = rotate(words[2], words[6], F_0_541 + F_0_765, F_0_541);
    u32 inner = rotate(words[2], words[6], F_0_541, F_0_541 - F_1_847);
    int z3 = (i16)(words[7] + words[3]), z4 = (i16)(words[5] + words[1]);
    u32 third = rotate(z3, z4, F_1_175 - F_1_961, F_1_175);
    u32 fourth = rotate(z3, z4, F_1_175, F_1_175 - F_0_390);
    u32 odd_0 = rotate(words[7], words[1], -F_0_899, F_1_501 - F_0_899) + fourth;
    u32 odd_1 = rotate(words[5], words[3], -F_2_562, F_3_072 - F_2_562) + third;
    u32 odd_2 = rotate(words[5], words[3], F_2_053 - F_2_562, -F_2_562) + fourth;
    u32 odd_3 = rotate(words[7], words[1], F_0_298 - F_0_899, -F_0_899) + third;
    words[0] = saturate(descale(sum + outer + odd_0, shift));
    words[7] = saturate(descale(sum + outer - odd_0, shift));
    words[1] = saturate(descale(difference + inner + odd_1, shift));
    words[6] = saturate(descale(difference + inner - odd_1, shift));
    words[2] = saturate(descale(difference - inner + odd_2, shift));
    words[5] = saturate(descale(difference - inner - odd_2, shift));
    words[3] = saturate(descale(sum - outer + odd_3, shift));
    words[4] = saturate(descale(sum - outer - odd_3, shift));
}

// Four points of eight words, the fifth of which has no part in them.
DEVICE void pass_4(int *words, u32 shift) {
    u32 first = (u32)words[0] << (CONST_BITS + 1);
    u32 second = rotate(words[2], words[6], F_1_847, -F_0_765);
    u32 odd_0 = rotate(words[1], words[3], F_2_562, F_0_899)
        + rotate(words[5], words[7], -F_0_601, -F_0_509);
    u32 odd_1 = rotate(words[1], words[3], F_1_061, -F_2_172)
        + rotate(words[5], words[7], F_1_451, -F_0_211);
    words[0] = saturate(descale(first + second + odd_0, shift));
    words[1] = saturate(descale(first - second + odd_1, shift));
    words[2] = saturate(descale(first - second - odd_1, shift));
    words[3] = saturate(descale(first + second - odd_0, shift));
}

// Two points, not saturated, of `first` and the odd words.
DEVICE void pass_2(int first, int *words, u32 shift) {
    u32 even = (u32)first << (CONST_BITS + 2);
    u32 odd = rotate(words[1], words[3], F_3_624, -F_1_272)
        + rotate(words[5], words[7], F_0_850, -F_0_720);
    words[0] = descale(even + odd, shift);
    words[1] = descale(even - odd, shift);
}

DEVICE u32 sample(int word) {
    return (u32)(clamp(word, -128, 127) + 128);
}

// Zigzag to natural order.
CONSTANT u8 ZIGZAG[COEFFICIENTS] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

// Reads a block in zigzag order: `words[row * SIDE + column]`, dequantised. The result has a bit for
// each row that is not all zero.
DEVICE u32 read_zigzag(const u8 *block, const u8 *quantizer, int *words) {
    u32 filled = 0;
    UNROLL for (u32 eighth = 0; eighth < SIDE; eighth++) {
        Chunk chunk = load(block + 16 * eighth);
        UNROLL for (u32 i = 0; i < SIDE; i++) {
            u64 half = i < SIDE / 2 ? chunk.low : chunk.high;
            words[ZIGZAG[eighth * SIDE + i]] = (i16)(half >> i % 4 * 16);
        }
    }
    UNROLL for (u32 row = 0; row < SIDE; row++) {
        Chunk factors = load(quantizer + 16 * row);
        int any = 0;
        UNROLL for (u32 i = 0; i < SIDE; i++) {
            u64 half = i < SIDE / 2 ? factors.low : factors.high;
            int *word = words + row * SIDE + i;
            any |= *word;
            *word = (i16)(*word * (i16)(half >> i % 4 * 16));
        }
        if (any) filled |= 1u << row;
    }
    return filled;
}

// The same of the rows that `mask` names, in natural order.
DEVICE u32 read_rows(const u8 *rows, u32 mask, const u8 *quantizer, int *words) {
    u32 place = 0, filled = 0;
    UNROLL for (u32 row = 0; row < SIDE; row++) {
        Chunk chunk = {0, 0};
        if (mask >> row & 1) chunk = load(rows + 16 * place);
        place += mask >> row & 1;
        if (chunk.low | chunk.high) filled |= 1u << row;
        Chunk factors = load(quantizer + 16 * row);
        UNROLL for (u32 i = 0; i < SIDE / 2; i++) {
            i16 low = (i16)(chunk.low >> 16 * i), high = (i16)(chunk.high >> 16 * i);
            words[row * SIDE + i] = (i16)(low * (i16)(factors.low >> 16 * i));
            words[row * SIDE + i + SIDE / 2] = (i16)(high * (i16)(factors.high >> 16 * i));
        }
    }
    return filled;
}

// Transforms the columns of a block with a pass, unless there is nothing in them but their first
// words.
#define COLUMNS(pass, points, is_flat, shift)                                                      \
    UNROLL for (u32 column = 0; column < SIDE; column++) {                                         \
        int line[SIDE];                                                                            \
        UNROLL for (u32 row = 0; row < SIDE; row++) line[row] = words[row * SIDE + column];        \
        if (is_flat) {                                                                             \
            int first = (i16)((u32)line[0] << PASS1_BITS);                                         \
            UNROLL for (u32 row = 0; row < points; row++) line[row] = first;                       \
        } else {                                                                                   \
            pass(line, shift);                                                                     \
        }                                                                                          \
        UNROLL for (u32 row = 0; row < points; row++) words[row * SIDE + column] = line[row];      \
    }

DEVICE void full(int *words, u32 filled, u8 *out, u32 stride) {
    int is_flat = !(filled & 0xFE);
    COLUMNS(pass_8, SIDE, is_flat, CONST_BITS - PASS1_BITS)
    UNROLL for (u32 row = 0; row < SIDE; row++) {
        int *line = words + row * SIDE;
        pass_8(line, CONST_BITS + PASS1_BITS + 3);
        u64 samples = 0;
        UNROLL for (u32 i = 0; i < SIDE; i++) samples |= (u64)sample(line[i]) << 8 * i;
        *(u64 *)(out + row * stride) = samples;
    }
}

DEVICE void half(int *words, u32 filled, u8 *out, u32 stride) {
    int is_flat = !(filled & 0xEE);
    COLUMNS(pass_4, 4, is_flat, CONST_BITS - PASS1_BITS + 1)
    UNROLL for (u32 row = 0; row < 4; row++) {
        int *line = words + row * SIDE;
        pass_4(line, CONST_BITS + PASS1_BITS + 4);
        u32 samples = 0;
        UNROLL for (u32 i = 0; i < 4; i++) samples |= sample(line[i]) << 8 * i;
        *(u32 *)(out + row * stride) = samples;
    }
}

DEVICE void quarter(int *words, u8 *out, u32 stride) {
    UNROLL for (u32 column = 0; column < SIDE; column++) {
        int line[SIDE];
        UNROLL for (u32 row = 0; row < SIDE; row++) line[row] = words[row * SIDE + column];
        pass_2(line[0], line, CONST_BITS - PASS1_BITS + 2);
        // Only the first word of a row keeps its 32 bits between the passes.
        words[column] = column ? saturate(line[0]) : line[0];
        words[SIDE + column] = column ? saturate(line[1]) : line[1];
    }
    UNROLL for (u32 row = 0; row < 2; row++) {
        int *line = words + row * SIDE;
        pass_2(line[0], line, CONST_BITS + PASS1_BITS + 5);
        u32 samples = sample(saturate(line[0])) | sample(saturate(line[1])) << 8;
        *(u16 *)(out + row * stride) = (u16)samples;
    }
}

// The mean, wrapped to the ten bits of libjpeg's range table.
DEVICE u32 eighth(const u8 *rows, u32 mask, const u8 *quantizer) {
    int coefficient = mask & 1 ? LOAD((const i16 *)rows) : 0;
    int mean = descale((u32)(coefficient * (i16)LOAD((const u16 *)quantizer)), 3);
    return sample((int)((u32)mean << 22) >> 22);
}

// Dequantises and transforms the blocks of a component; a thread makes one.
KERNEL(transform, Decode, decode) {
    const Picture *picture = decode.pictures + blockIdx.y / PLANES;
    const Component *component = picture->components + blockIdx.y % PLANES;
    u32 item = ITEM;
    if (item >= component->columns * component->rows) return;
    u32 row = item / component->columns, column = item % component->columns;
    const u8 *rows;
    u32 mask = 1;
    if (picture->is_sparse) {
        u32 there = LOAD(PAYLOAD(u32, component->blocks) + item);
        rows = PAYLOAD(u8, picture->rows) + 16 * (u64)(there >> 8);
        mask = there & 0xFF;
    } else {
        u32 across = component->mcu_across, down = component->mcu_down;
        u32 mcu = row / down * picture->entropy.wanted + column / across;
        u32 slot = component->blocks + row % down * across + column % across;
        u32 block = mcu * picture->entropy.slot_count + slot;
        rows = SCRATCH(u8, picture->entropy.coefficients + 2 * COEFFICIENTS * block);
    }
    const u8 *quantizer = PAYLOAD(u8, component->quantizer);
    u32 side = component->side, stride = component->stride;
    u8 *out = SCRATCH(u8, component->plane + row * side * stride + column * side);
    if (side == 1) {
        *out = (u8)eighth(rows, mask, quantizer);
        return;
    }
    int words[COEFFICIENTS];
    u32 filled = picture->is_sparse ? read_rows(rows, mask, quantizer, words)
                                    : read_zigzag(rows, quantizer, words);
    if (side == 8) full(words, filled, out, stride);
    else if (side == 4) half(words, filled, out, stride);
    else quarter(words, out, stride);
}

// Luma and colour differences to red, green and blue, in libjpeg's fixed point.
DEVICE void convert(u32 *channels) {
    int y = (int)channels[0], cb = (int)channels[1] - 128, cr = (int)channels[2] - 128;
    channels[0] = (u32)clamp(y + ((91881 * cr + 32768) >> 16), 0, 255);
    channels[1] = (u32)clamp(y + ((-22554 * cb - 46802 * cr + 32768) >> 16), 0, 255);
    channels[2] = (u32)clamp(y + ((116130 * cb + 32768) >> 16), 0, 255);
}

// Samples of a component, by column and row of the component; those that are not there are their
// neighbours.
typedef struct {
    const Component *of;
    const u8 *plane;
} Samples;

DEVICE const u8 *row_of(const Samples *samples, u32 row) {
    const Component *of = samples->of;
    u32 there = less(more(row, of->top), of->bottom - 1) - of->top;
    return samples->plane + there * of->stride;
}

DEVICE u32 column_of(const Samples *samples, u32 column) {
    const Component *of = samples->of;
    return less(more(column, of->left), of->right - 1) - of->left;
}

// Pixels `x` to `x + 3` of a row of pixels, upsampled by the triangle filter. `x` is a multiple of 4.
DEVICE u32 filtered(const Samples *samples, u32 x, u32 y) {
    u32 filter = samples->of->filter;
    // Row and column of sums have weights 3 and 1, or 1 and 0 where nothing is upsampled.
    u32 is_down = filter & 2, lower = is_down ? y & 1 : 0;
    u32 line = is_down ? y / 2 : y;
    const u8 *near = row_of(samples, line);
    const u8 *far = row_of(samples, is_down ? lower ? line + 1 : more(line, 1) - 1 : line);
    u32 by_near = is_down ? 3 : 1, by_far = is_down ? 1 : 0;
    u32 pixels = 0;
    if (!(filter & 1)) {
        u32 bias = lower ? 2 : 1;
        UNROLL for (u32 i = 0; i < 4; i++) {
            u32 column = column_of(samples, x + i);
            pixels |= ((3 * LOAD(near + column) + LOAD(far + column) + bias) >> 2) << 8 * i;
        }
        return pixels;
    }
    u32 sums[4];
    UNROLL for (u32 i = 0; i < 4; i++) {
        u32 column = column_of(samples, more(x / 2 + i, 1) - 1);
        sums[i] = by_near * LOAD(near + column) + by_far * LOAD(far + column);
    }
    u32 left = is_down ? 8 : 1, right = is_down ? 7 : 2, shift = is_down ? 4 : 2;
    UNROLL for (u32 i = 0; i < 2; i++) {
        u32 three = 3 * sums[i + 1];
        pixels |= ((three + sums[i] + left) >> shift) << 16 * i;
        pixels |= ((three + sums[i + 2] + right) >> shift) << (16 * i + 8);
    }
    return pixels;
}

// Pixels `x` to `x + 3` of a component.
DEVICE u32 upsampled(const Samples *samples, u32 x, u32 y) {
    const Component *of = samples->of;
    if (of->filter) return filtered(samples, x, y);
    const u8 *row = row_of(samples, y / of->down);
    if (of->across == 1 && of->side >= 4 && x >= of->left && x + 4 <= of->right) {
        return LOAD((const u32 *)(row + (x - of->left)));
    }
    u32 pixels = 0;
    UNROLL for (u32 i = 0; i < 4; i++) {
        pixels |= (u32)LOAD(row + column_of(samples, (x + i) / of->across)) << 8 * i;
    }
    return pixels;
}

// Upsamples the components and converts them to red, green and blue; a thread makes 4 pixels.
KERNEL(colours, Decode, decode) {
    const Picture *picture = decode.pictures + blockIdx.y;
    const Pixels *pixels = &picture->pixels;
    u32 groups = pixels->stride / 4;
    u32 item = ITEM;
    if (item >= groups * pixels->height) return;
    u32 row = item / groups, group = item % groups;
    u32 x = pixels->left + 4 * group, y = pixels->top + row;
    u32 packed[PLANES], out[PLANES] = {0, 0, 0};
    UNROLL for (u32 i = 0; i < PLANES; i++) {
        const Component *component = picture->components + i;
        Samples samples = {component, SCRATCH(u8, component->plane)};
        packed[i] = upsampled(&samples, x, y);
    }
    UNROLL for (u32 i = 0; i < 4; i++) {
        u32 channels[PLANES];
        UNROLL for (u32 j = 0; j < PLANES; j++) channels[j] = packed[j] >> 8 * i & 255;
        if (picture->is_ycc) convert(channels);
        UNROLL for (u32 j = 0; j < PLANES; j++) out[j] |= channels[j] << 8 * i;
    }
    UNROLL for (u32 i = 0; i < PLANES; i++) {
        *SCRATCH(u32, pixels->planes[i] + row * pixels->stride + 4 * group) = out[i];
    }
}

DEVICE u32 rounded(int sum) {
    return (u32)clamp(sum >> WEIGHT_BITS, 0, 255);
}

// A pass of a resize: samples, and the bytes from row to row.
typedef struct {
    const u8 *from;
    u32 stride;
    u8 *to;
    u32 to_stride;
    // Taps along the axis, and lines across it.
    const u32 *starts;
    const int *weights;
    u32 count, taps, lines;
} Pass;

// Resizes rows to `count` columns: a thread makes one column of 4 rows.
DEVICE void resize_rows(const Pass *pass, u32 item) {
    u32 column = item % pass->count, line = item / pass->count * 4;
    if (line >= pass->lines) return;
    u32 start = LOAD(pass->starts + column), last = pass->lines - 1;
    const u8 *row_0 = pass->from + line * pass->stride + start;
    const u8 *row_1 = pass->from + less(line + 1, last) * pass->stride + start;
    const u8 *row_2 = pass->from + less(line + 2, last) * pass->stride + start;
    const u8 *row_3 = pass->from + less(line + 3, last) * pass->stride + start;
    int sum_0 = 1 << (WEIGHT_BITS - 1), sum_1 = sum_0, sum_2 = sum_0, sum_3 = sum_0;
    const int *weights = pass->weights + column;
    for (u32 tap = 0; tap < pass->taps; tap++) {
        int weight = LOAD(weights + tap * pass->count);
        sum_0 += weight * LOAD(row_0 + tap);
        sum_1 += weight * LOAD(row_1 + tap);
        sum_2 += weight * LOAD(row_2 + tap);
        sum_3 += weight * LOAD(row_3 + tap);
    }
    u8 *to = pass->to + line * pass->to_stride + column;
    to[0] = (u8)rounded(sum_0);
    if (line + 1 <= last) to[pass->to_stride] = (u8)rounded(sum_1);
    if (line + 2 <= last) to[2 * pass->to_stride] = (u8)rounded(sum_2);
    if (line + 3 <= last) to[3 * pass->to_stride] = (u8)rounded(sum_3);
}

// Resizes columns to `count` rows: a thread makes one row of 4 columns.
DEVICE void resize_columns(const Pass *pass, u32 item) {
    u32 groups = (pass->lines + 3) / 4;
    u32 group = item % groups, row = item / groups;
    if (row >= pass->count) return;
    const u8 *from = pass->from + LOAD(pass->starts + row) * pass->stride + 4 * group;
    const int *weights = pass->weights + row;
    int sums[4];
    UNROLL for (u32 i = 0; i < 4; i++) sums[i] = 1 << (WEIGHT_BITS - 1);
    for (u32 tap = 0; tap < pass->taps; tap++) {
        int weight = LOAD(weights + tap * pass->count);
        u32 samples = LOAD((const u32 *)(from + tap * pass->stride));
        UNROLL for (u32 i = 0; i < 4; i++) sums[i] += weight * (int)(samples >> 8 * i & 255);
    }
    u32 packed = 0;
    UNROLL for (u32 i = 0; i < 4; i++) packed |= rounded(sums[i]) << 8 * i;
    *(u32 *)(pass->to + row * pass->to_stride + 4 * group) = packed;
}

#define AXIS(pass, axis)                                                                           \
    (pass).starts = PAYLOAD(u32, (axis)->starts);                                                  \
    (pass).weights = PAYLOAD(int, (axis)->weights);                                                \
    (pass).count = (axis)->count;                                                                  \
    (pass).taps = (axis)->taps

// The first pass of the resize of a plane.
KERNEL(resize_first, Decode, decode) {
    const Picture *picture = decode.pictures + blockIdx.y / PLANES;
    const Resize *resize = picture->resizes + blockIdx.y % PLANES;
    if (blockIdx.y % PLANES >= picture->count) return;
    Pass pass;
    pass.from = SCRATCH(u8, resize->source);
    pass.stride = resize->source_stride;
    pass.to = SCRATCH(u8, resize->between);
    pass.to_stride = resize->between_stride;
    if (resize->is_vertical_first) {
        AXIS(pass, &resize->rows);
        pass.lines = resize->source_width;
        resize_columns(&pass, ITEM);
    } else {
        AXIS(pass, &resize->columns);
        pass.lines = resize->source_height;
        resize_rows(&pass, ITEM);
    }
}

// The second pass, over what the first has left.
KERNEL(resize_second, Decode, decode) {
    const Picture *picture = decode.pictures + blockIdx.y / PLANES;
    const Resize *resize = picture->resizes + blockIdx.y % PLANES;
    if (blockIdx.y % PLANES >= picture->count) return;
    Pass pass;
    pass.from = SCRATCH(u8, resize->between);
    pass.stride = resize->between_stride;
    pass.to = SCRATCH(u8, resize->result);
    pass.to_stride = resize->result_stride;
    if (resize->is_vertical_first) {
        AXIS(pass, &resize->columns);
        pass.lines = resize->rows.count;
        resize_rows(&pass, ITEM);
    } else {
        AXIS(pass, &resize->rows);
        pass.lines = resize->columns.count;
        resize_columns(&pass, ITEM);
    }
}

// A pixel of the result.
DEVICE void pixel_at(const Decode *argument, const Picture *picture, u32 x, u32 y, u32 *channels) {
    const Decode decode = *argument;
    const Frame *frame = &picture->frame;
    if (frame->flip) x = frame->width - 1 - x;
    if (frame->flip_vertical) y = frame->height - 1 - y;
    // Left of the window and above it these are large numbers.
    x -= frame->left;
    y -= frame->top;
    if (x >= frame->window_width || y >= frame->window_height) {
        UNROLL for (u32 i = 0; i < PLANES; i++) channels[i] = frame->fill[i];
        return;
    }
    UNROLL for (u32 i = 0; i < PLANES; i++) {
        const Resize *resize = picture->resizes + (i < picture->count ? i : 0);
        channels[i] = LOAD(SCRATCH(u8, resize->result + y * resize->result_stride + x));
    }
    if (picture->is_ycc && !picture->pixels.height) convert(channels);
}

// Flips, pads and interleaves: a thread makes 4 pixels.
KERNEL(place, Decode, decode) {
    const Picture *picture = decode.pictures + blockIdx.y;
    const Frame *frame = &picture->frame;
    u32 count = frame->width * frame->height;
    u32 first = 4 * ITEM;
    if (first >= count) return;
    u8 *target = decode.target + picture->target + 3 * (u64)first;
    u32 x = first % frame->width, y = first / frame->width;
    u32 words[PLANES] = {0, 0, 0};
    UNROLL for (u32 i = 0; i < 4; i++) {
        u32 channels[PLANES] = {0, 0, 0};
        if (first + i < count) pixel_at(&decode, picture, x, y, channels);
        UNROLL for (u32 j = 0; j < PLANES; j++) {
            words[(3 * i + j) / 4] |= channels[j] << (3 * i + j) % 4 * 8;
        }
        if (++x == frame->width) {
            x = 0;
            y++;
        }
    }
    if (first + 4 <= count && (u64)target % 4 == 0) {
        UNROLL for (u32 i = 0; i < PLANES; i++) ((u32 *)target)[i] = words[i];
        return;
    }
    for (u32 i = 0; i < 3 * less(4, count - first); i++) {
        target[i] = (u8)(i < 4 ? words[0] >> 8 * i : i < 8 ? words[1] >> (8 * i - 32) : words[2] >> (8 * i - 64));
    }
}
