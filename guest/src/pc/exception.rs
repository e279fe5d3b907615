// SPDX-License-Identifier: Apache-2.0
//! Exceptions and interrupts of the VM: a table of 256 handlers that all lead to one function of the program.

use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering};

pub use super::frame::Frame;

/// A program's handler.
pub type Handler = fn(&mut Frame);

/// The code segment that the loader leaves.
const CODE: u64 = 0x10;
const STUB: u64 = 16;

#[repr(C, align(16))]
struct Table(UnsafeCell<[[u64; 2]; 256]>);

// SAFETY: written before it is loaded, by one processor; read by hardware.
unsafe impl Sync for Table {}

static TABLE: Table = Table(UnsafeCell::new([[0; 2]; 256]));
static HANDLER: AtomicUsize = AtomicUsize::new(0);

global_asm!(
    r#"
    .text
    .balign 16
__pc_stubs:
    .set vector, 0
    .rept 256
    .balign 16
    .if (vector == 8) || ((vector >= 10) && (vector <= 14)) || (vector == 17) || (vector == 21)
    .else
    pushq   $0
    .endif
    pushq   $vector
    jmp     .Lpc_trap
    .set vector, vector + 1
    .endr
.Lpc_trap:
    pushq   %rax
    pushq   %rcx
    pushq   %rdx
    pushq   %rsi
    pushq   %rdi
    pushq   %r8
    pushq   %r9
    pushq   %r10
    pushq   %r11
    cld
    movq    %rsp, %rdi
    pushq   %rbp
    movq    %rsp, %rbp
    andq    $-16, %rsp
    call    {handle}
    movq    %rbp, %rsp
    popq    %rbp
    popq    %r11
    popq    %r10
    popq    %r9
    popq    %r8
    popq    %rdi
    popq    %rsi
    popq    %rdx
    popq    %rcx
    popq    %rax
    addq    $16, %rsp
    iretq
"#,
    handle = sym handle,
    options(att_syntax)
);

unsafe extern "C" {
    static __pc_stubs: u8;
}

extern "C" fn handle(frame: &mut Frame) {
    if super::attempt::recover(frame) {
        return;
    }
    let handler = HANDLER.load(Ordering::Relaxed);
    if handler == 0 {
        crate::println!(
            "exception {} at {:#x}, code {:#x}",
            frame.vector,
            frame.rip,
            frame.code
        );
        super::power_off()
    }
    // SAFETY: `install` has stored a handler.
    let handler: Handler = unsafe { core::mem::transmute(handler) };
    handler(frame);
}

/// Makes the function the handler of all exceptions and interrupts.
pub fn install(handler: Handler) {
    HANDLER.store(handler as usize, Ordering::Relaxed);
}

/// Fills the table, and loads it.
pub(super) fn init() {
    let stubs = (&raw const __pc_stubs) as u64;
    // SAFETY: one processor runs, and the table is not loaded yet.
    let table = unsafe { &mut *TABLE.0.get() };
    for (entry, index) in table.iter_mut().zip(0..) {
        let address = stubs + index * STUB;
        let low = address & 0xFFFF | CODE << 16 | 0x8E << 40 | (address >> 16 & 0xFFFF) << 48;
        *entry = [low, address >> 32];
    }
    load();
}

/// Lets a vector begin on a stack of the task state segment (1 to 7), or with 0 on the one in use.
pub fn use_stack(vector: u8, number: u64) {
    // SAFETY: the processor reads an entry only when it takes the vector, which does not happen meanwhile.
    let table = unsafe { &mut *TABLE.0.get() };
    if let Some([low, _]) = table.get_mut(usize::from(vector)) {
        *low = *low & !(7 << 32) | (number & 7) << 32;
    }
}

/// Loads the table on this processor.
pub fn load() {
    let base = TABLE.0.get() as u64;
    let pointer: [u16; 5] = [
        256 * 16 - 1,
        base as u16,
        (base >> 16) as u16,
        (base >> 32) as u16,
        (base >> 48) as u16,
    ];
    // SAFETY: the table stays where it is.
    unsafe { asm!("lidt [{}]", in(reg) pointer.as_ptr(), options(readonly, nostack)) }
}

/// Loads a table without a handler, and executes an instruction that is none. No handler is found for that
/// exception, nor for the two that follow from it.
#[inline(never)]
pub fn lose_handlers() -> ! {
    let nothing = [0_u16; 5];
    // SAFETY: nothing of the program is executed after the last instruction.
    unsafe { asm!("lidt [{}]", "ud2", in(reg) nothing.as_ptr(), options(noreturn)) }
}
