/* libjpeg-turbo through its own interface: whole images, scaled ones, and crops.
 *
 * Not through TurboJPEG, whose tj3SetCroppingRegion reads the rows below the crop as well: this
 * stops after the crop's last row, which is the best that libjpeg-turbo can do. A damaged file
 * ends the process; only files that are known to be good come here. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

struct libjpeg_turbo {
    struct jpeg_decompress_struct decompress;
    struct jpeg_error_mgr errors;
};

struct libjpeg_turbo *libjpeg_turbo_new(void) {
    struct libjpeg_turbo *decoder = malloc(sizeof *decoder);
    if (decoder == NULL) return NULL;
    decoder->decompress.err = jpeg_std_error(&decoder->errors);
    jpeg_create_decompress(&decoder->decompress);
    return decoder;
}

void libjpeg_turbo_free(struct libjpeg_turbo *decoder) {
    jpeg_destroy_decompress(&decoder->decompress);
    free(decoder);
}

/* Decodes `bytes` to RGB at `eighths`/8 of its size. `region` is x, y, width and height in pixels
 * of that size, or all zero for everything; the decoder begins further left, where an MCU does.
 * Returns how many bytes of `out` were written, 0 when `capacity` is too small. */
size_t libjpeg_turbo_decode(struct libjpeg_turbo *decoder, const unsigned char *bytes, size_t length,
                            unsigned eighths, const unsigned region[4], unsigned char *out,
                            size_t capacity) {
    j_decompress_ptr d = &decoder->decompress;
    jpeg_mem_src(d, bytes, length);
    jpeg_read_header(d, TRUE);
    d->scale_num = eighths;
    d->scale_denom = 8;
    d->out_color_space = JCS_RGB;
    jpeg_start_decompress(d);

    JDIMENSION rows = d->output_height;
    if (region[2] != 0) {
        JDIMENSION x = region[0], width = region[2];
        jpeg_crop_scanline(d, &x, &width);
        if (region[1] != 0) jpeg_skip_scanlines(d, region[1]);
        rows = region[3];
    }
    size_t stride = (size_t)d->output_width * 3, written = stride * rows;
    if (written > capacity) {
        jpeg_abort_decompress(d);
        return 0;
    }
    for (JDIMENSION y = 0; y < rows;) {
        JSAMPROW row_pointers[16];
        JDIMENSION count = rows - y < 16 ? rows - y : 16;
        for (JDIMENSION i = 0; i < count; i++) row_pointers[i] = out + stride * (y + i);
        y += jpeg_read_scanlines(d, row_pointers, count);
    }
    /* What lies below a crop is not read. */
    if (d->output_scanline < d->output_height) jpeg_abort_decompress(d);
    else jpeg_finish_decompress(d);
    return written;
}
