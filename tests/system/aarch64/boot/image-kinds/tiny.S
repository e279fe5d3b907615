// SPDX-License-Identifier: Apache-2.0
// The smallest guest with the header of an arm64 Linux Image (Documentation/arch/arm64/booting.rst). It
// writes a line to the UART of the default machine and switches itself off. It works at any address, so that
// it also serves as a raw binary. `tiny.img` and `tiny.img.gz` are made of it with
//   aarch64-linux-gnu-gcc -c tiny.S && aarch64-linux-gnu-objcopy -O binary tiny.o tiny.img &&
//   gzip -9nk tiny.img
// and `tiny.bin`, the same without its header, by (head -c 64 /dev/zero; tail -c +65 tiny.img) > tiny.bin.
// `tiny.zboot` is tiny.img.gz after the 64 bytes of a zboot header: "MZ", 0, 0, "zimg", offset and size of
// the rest, 8 zeroes, "gzip", zeroes.
        b       start
        .word   0
        .quad   0x80000                 // text_offset
        .quad   end - . + 16            // image_size
        .quad   0xa                     // flags: little-endian, 4K pages, anywhere
        .quad   0, 0, 0
        .ascii  "ARM\x64"
        .word   0
start:  adr     x1, text
        mov     x2, #0x09000000         // PL011 UARTDR
1:      ldrb    w0, [x1], #1
        cbz     w0, 2f
        str     w0, [x2]
        b       1b
2:      mov     w0, #0x0008             // PSCI SYSTEM_OFF, 0x84000008
        movk    w0, #0x8400, lsl #16
        hvc     #0
3:      wfi
        b       3b
text:   .asciz  "a tiny image says hello\r\n"
        .balign 8
end:
