// SPDX-License-Identifier: Apache-2.0
//! Several pCPUs at once. Every software-generated interrupt sent to a vCPU that has taken the one before
//! arrives. Shared lines that wander between vCPUs are taken exactly once. The same is true of a GICv2, whose
//! interrupts are their senders'. A vCPU that waits for an interrupt, on its pCPU or away from it, is woken
//! by the one that comes just then.

use bulkhead_arch_vgic::{
    Bank, Control, CpuInterface, Distributor, Frame, Hardware, ListRegister, PhysicalLines, Redistributor,
    RegisterAccess, Sgi, Vgic,
};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

const ROUNDS: u32 = 50_000;
const LINE: u32 = 50;

/// Signals that reach vCPU 0 from elsewhere.
#[derive(Default)]
struct Bells {
    /// The software-generated interrupt to its pCPU, sent if the vCPU was loaded there.
    kick: AtomicBool,
    /// Mail for its kernel, posted if the vCPU was not loaded.
    mail: AtomicBool,
    /// The number of looks at them while it waited.
    looks: AtomicU32,
}

/// A pCPU that takes and ends all that is pending, without priorities. A pCPU without bells needs no kicks:
/// it polls.
struct Poller<'a> {
    slots: [ListRegister; 2],
    taken: [u32; 288],
    version2: bool,
    bells: Option<&'a Bells>,
    /// An interrupt waited at the last look.
    looks: core::cell::Cell<bool>,
}

impl CpuInterface for Poller<'_> {
    fn slots(&self) -> u32 {
        2
    }
    fn empty_slots(&self) -> u32 {
        (0..2)
            .filter(|n| self.slots[*n].is_empty() && !self.slots[*n].notices_end())
            .fold(0, |m, n| m | 1 << n)
    }
    fn ended_slots(&self) -> u32 {
        (0..2)
            .filter(|n| self.slots[*n].is_empty() && self.slots[*n].notices_end())
            .fold(0, |m, n| m | 1 << n)
    }
    fn settle(&mut self) {}
    fn list_register(&self, slot: u32) -> ListRegister {
        self.slots[slot as usize]
    }
    fn set_list_register(&mut self, slot: u32, value: ListRegister) {
        self.slots[slot as usize] = value;
    }
    fn set_control(&mut self, _: Control) {}
    fn take_end_count(&mut self) -> u32 {
        0
    }
    fn machine_control(&self) -> u64 {
        0xF8 << 24 | 3
    }
    fn set_machine_control(&mut self, _: u64) {}
    fn active_priorities(&self) -> [[u32; 4]; 2] {
        [[0; 4]; 2]
    }
    fn set_active_priorities(&mut self, _: &[[u32; 4]; 2]) {}
    fn preemption_shift(&self) -> u32 {
        3
    }
    fn set_near_register(&mut self, slot: u32, value: ListRegister) {
        self.set_list_register(slot, value);
    }
    fn has_active_priorities(&self) -> bool {
        false
    }
    fn open(&mut self) {}
    fn names_senders(&self) -> bool {
        self.version2
    }
}

impl PhysicalLines for Poller<'_> {
    fn set_enabled(&mut self, _: u32, _: bool) {}
    fn set_priority(&mut self, _: u32, _: u8) {}
    fn set_target(&mut self, _: u32, _: usize) {}
    fn is_edge(&self, _: u32) -> bool {
        false
    }
    fn is_pending(&self, _: u32) -> bool {
        false
    }
    fn set_pending(&mut self, _: u32, _: bool) {}
    fn set_active(&mut self, _: u32, _: bool) {}
}

impl Hardware for Poller<'_> {
    fn enable_private(&mut self, _: u32) {}
    fn kick(&mut self, index: usize, present: bool) {
        if let (Some(bells), 0) = (self.bells, index) {
            let bell = if present { &bells.kick } else { &bells.mail };
            bell.store(true, SeqCst);
        }
    }
    fn look_again(&mut self, me: usize) {
        // A dirty vCPU is looked at in each pass; the one that waits for its bell hears it.
        self.kick(me, true);
    }
    /// Says yes at every second look.
    fn is_interrupted(&self) -> bool {
        self.looks.set(!self.looks.get());
        self.looks.get()
    }
    fn relax(&self) {
        std::thread::yield_now();
    }
}

impl Poller<'_> {
    fn new(version2: bool) -> Self {
        Self {
            slots: [ListRegister::EMPTY; 2],
            taken: [0; 288],
            version2,
            bells: None,
            looks: core::cell::Cell::new(false),
        }
    }

    /// Runs one pass of the guest: takes everything pending and ends it.
    fn guest(&mut self, taken: &[AtomicU32]) {
        for slot in &mut self.slots {
            if slot.is_pending() {
                self.taken[slot.line() as usize] += 1;
                taken[slot.line() as usize].fetch_add(1, SeqCst);
                *slot = slot.with_pending(false);
            }
        }
    }
}

fn word(line: u32, base: u32) -> RegisterAccess {
    RegisterAccess {
        frame: Frame::Distributor,
        offset: base + line / 32 * 4,
        size: 4,
    }
}

/// Runs vCPU `me` of two. It sends the other an interrupt whenever the last one was taken, and makes the
/// shared line pending for a random one of the two whenever it was taken.
fn run(me: usize, vgic: &Vgic<'_>, counts: &[Vec<AtomicU32>; 2], raised: &AtomicU32, started: &Barrier) {
    let mut cpu = Poller::new(false);
    let mut bank = Bank::new();
    vgic.reset(me, &mut bank, &mut cpu);
    vgic.load(me, &mut bank, &mut cpu);
    let enable = RegisterAccess {
        frame: Frame::Redistributor(me),
        offset: 0x1_0100,
        size: 4,
    };
    vgic.write(me, &mut bank, &mut cpu, enable, 1);
    started.wait();
    let other = 1 - me;
    let total = |line: usize| counts.iter().map(|count| count[line].load(SeqCst)).sum::<u32>();
    let mut sent = 0;
    // Passes after all has been taken, for what comes twice. Before that, a vCPU goes on for the other one's
    // sake.
    let mut idle = 0;
    while idle < 2000 {
        let all_taken = total(0) >= 2 * ROUNDS && total(LINE as usize) >= ROUNDS;
        idle = if all_taken { idle + 1 } else { 0 };
        // Interrupt 0 of the other carries no count, so one may be under way at a time.
        if sent < ROUNDS && counts[other][0].load(SeqCst) == sent {
            sent += 1;
            vgic.send(me, Sgi::Group1, 1 << other, &mut cpu);
        }
        let shared = total(LINE as usize);
        let before = raised.load(SeqCst);
        if before < ROUNDS
            && shared == before
            && raised
                .compare_exchange(before, before + 1, SeqCst, SeqCst)
                .is_ok()
        {
            vgic.write(me, &mut bank, &mut cpu, word(LINE, 0x200), 1 << (LINE % 32));
            let route = RegisterAccess {
                frame: Frame::Distributor,
                offset: 0x6000 + 8 * LINE,
                size: 8,
            };
            vgic.write(me, &mut bank, &mut cpu, route, u64::from((before / 3) & 1));
        }
        vgic.service(me, &mut bank, &mut cpu);
        cpu.guest(&counts[me]);
        std::thread::yield_now();
    }
    assert_eq!(sent, ROUNDS);
}

#[test]
fn two_at_once_lose_nothing() {
    let distributor = Distributor::new();
    distributor.set_lines(288);
    let redistributors = [Redistributor::new(), Redistributor::new()];
    let vgic = Vgic::new(&distributor, &redistributors);
    let counts = [(); 2].map(|()| (0..288).map(|_| AtomicU32::new(0)).collect::<Vec<_>>());
    let raised = AtomicU32::new(0);
    let started = Barrier::new(2);
    let mut cpu = Poller::new(false);
    let mut bank = Bank::new();
    vgic.write(
        0,
        &mut bank,
        &mut cpu,
        RegisterAccess {
            frame: Frame::Distributor,
            offset: 0,
            size: 4,
        },
        3,
    );
    vgic.write(0, &mut bank, &mut cpu, word(LINE, 0x100), 1 << (LINE % 32));
    // Edge-triggered, as what software makes pending is.
    vgic.write(
        0,
        &mut bank,
        &mut cpu,
        RegisterAccess {
            frame: Frame::Distributor,
            offset: 0xC0C,
            size: 4,
        },
        0xAAAA_AAAA,
    );
    std::thread::scope(|scope| {
        for me in 0..2 {
            let (vgic, counts, raised, started) = (&vgic, &counts, &raised, &started);
            scope.spawn(move || run(me, vgic, counts, raised, started));
        }
    });
    for count in &counts {
        assert_eq!(count[0].load(SeqCst), ROUNDS);
    }
    let shared: u32 = counts.iter().map(|count| count[LINE as usize].load(SeqCst)).sum();
    assert_eq!(shared, ROUNDS);
}

/// vCPU 0 takes what vCPUs 1 and 2 send it by the same number, each whenever its last one was taken.
fn take_from_both(vgic: &Vgic<'_>, own: &Redistributor, taken: &[AtomicU32; 3], online: &Barrier) {
    let mut cpu = Poller::new(true);
    let mut bank = Bank::new();
    vgic.reset(0, &mut bank, &mut cpu);
    vgic.load(0, &mut bank, &mut cpu);
    for (offset, value) in [(0x100, 1 << 3), (0, 3)] {
        let access = RegisterAccess {
            frame: Frame::Version2,
            offset,
            size: 4,
        };
        vgic.write(0, &mut bank, &mut cpu, access, value);
    }
    online.wait();
    let mut short = 0;
    let mut idle = 0u32;
    while taken[1].load(SeqCst) < SENT || taken[2].load(SeqCst) < SENT {
        if cpu.ended_slots() != 0 {
            vgic.maintain(0, &mut bank, &mut cpu);
        } else if own.is_dirty() {
            if own.deliver_again(&mut bank, &mut cpu) || vgic.deliver_shared(own, &bank, &mut cpu) {
                short += 1;
            } else {
                vgic.service(0, &mut bank, &mut cpu);
            }
        }
        for slot in &mut cpu.slots {
            if slot.is_pending() {
                assert_eq!(slot.line(), 3);
                taken[slot.sender().trailing_zeros() as usize].fetch_add(1, SeqCst);
                idle = 0;
                *slot = slot.with_pending(false);
            }
        }
        idle += 1;
        assert!(
            idle < 10_000_000,
            "{taken:?} {short} {own:#?} {bank:#?} {:#x?}",
            cpu.slots
        );
        std::thread::yield_now();
    }
    assert!(short > 0, "never by the short way");
}

const SENT: u32 = 2_000;

#[test]
fn two_senders_at_once_lose_nothing() {
    let distributor = Distributor::new();
    let redistributors = [const { Redistributor::new() }; 3];
    let vgic = Vgic::new(&distributor, &redistributors);
    let taken = [const { AtomicU32::new(0) }; 3];
    let online = Barrier::new(3);
    std::thread::scope(|scope| {
        let (vgic, redistributors, taken, online) = (&vgic, &redistributors, &taken, &online);
        scope.spawn(move || take_from_both(vgic, &redistributors[0], taken, online));
        for me in [1, 2] {
            scope.spawn(move || {
                let mut cpu = Poller::new(true);
                online.wait();
                for sent in 0..SENT {
                    vgic.send_single_version2(me, 0, 3, &mut cpu);
                    while taken[me].load(SeqCst) == sent {
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
    assert_eq!([1, 2].map(|sender| taken[sender].load(SeqCst)), [SENT; 2]);
}

/// Rounds of [`who_waits_is_woken`].
const WAKES: u32 = 3_000;

/// Plays a pCPU, as far as vCPU 0 goes. The vCPU takes what it has and waits for more, on its pCPU or, every
/// other time, away from it, while another vCPU is there. At each point it does what the backend and the
/// kernel do there.
fn wait_for_each(
    vgic: &Vgic<'_>,
    own: &Redistributor,
    bells: &Bells,
    counts: &[AtomicU32],
    online: &Barrier,
) {
    let mut cpu = Poller::new(false);
    let mut bank = Bank::new();
    vgic.reset(0, &mut bank, &mut cpu);
    vgic.load(0, &mut bank, &mut cpu);
    let enable = RegisterAccess {
        frame: Frame::Redistributor(0),
        offset: 0x1_0100,
        size: 4,
    };
    vgic.write(0, &mut bank, &mut cpu, enable, 0b1110);
    online.wait();
    let mut waits = 0;
    loop {
        // On its way into the guest.
        if own.is_dirty()
            && !own.deliver_again(&mut bank, &mut cpu)
            && !vgic.deliver_shared(own, &bank, &mut cpu)
        {
            vgic.service(0, &mut bank, &mut cpu);
        }
        cpu.guest(counts);
        if counts[0].load(SeqCst) != 0 {
            break;
        }
        // A kick interrupts the guest, and the maintenance interrupt.
        if bells.kick.swap(false, SeqCst) {
            continue;
        }
        if cpu.ended_slots() != 0 {
            vgic.maintain(0, &mut bank, &mut cpu);
            continue;
        }
        // WFI.
        if !bank.is_idle(&cpu) && vgic.has_work(0, &mut bank, &cpu) {
            continue;
        }
        waits += 1;
        let leaves = waits % 2 == 0;
        if leaves {
            vgic.unload(0, &mut bank, &mut cpu);
            cpu.slots = [ListRegister::pending(9, 0x80, true).with_pending(false); 2];
        }
        // From here on the kernel has it among those that wait.
        loop {
            bells.looks.fetch_add(1, SeqCst);
            if bells.kick.swap(false, SeqCst) | bells.mail.swap(false, SeqCst) {
                break;
            }
            if counts[0].load(SeqCst) != 0 {
                return;
            }
            std::thread::yield_now();
        }
        // Mail that comes while it is ready tells nothing new.
        bells.mail.store(false, SeqCst);
        if leaves {
            vgic.load(0, &mut bank, &mut cpu);
        }
    }
}

/// Plays the lines: makes one interrupt after another pending for vCPU 0, in all ways that there are from
/// another pCPU.
fn wake_each(vgic: &Vgic<'_>, bells: &Bells, counts: &[AtomicU32]) {
    let mut cpu = Poller::new(false);
    cpu.bells = Some(bells);
    let mut bank = Bank::new();
    let bit = 1 << (LINE % 32);
    for round in 0..WAKES {
        let line = if round % 6 < 3 { 1 + round % 3 } else { LINE };
        let before = counts[line as usize].load(SeqCst);
        match round % 6 {
            0 => vgic.send_single(1, 0, line, &mut cpu),
            5 => vgic.pulse(1, LINE, &mut cpu),
            1 | 2 => vgic.send(1, Sgi::Group1, u64::from(line) << 24 | 1, &mut cpu),
            3 => vgic.raise(1, LINE, &mut cpu),
            _ => {
                // Pending before it is enabled.
                vgic.write(1, &mut bank, &mut cpu, word(LINE, 0x180), bit);
                vgic.raise(1, LINE, &mut cpu);
                vgic.write(1, &mut bank, &mut cpu, word(LINE, 0x100), bit);
            }
        }
        vgic.lower(LINE);
        let is_taken = || counts[line as usize].load(SeqCst) != before;
        // The next look finds the bell, and the one after that comes when it has taken what there was.
        let seen = bells.looks.load(SeqCst);
        while !is_taken() {
            let is_over = bells.looks.load(SeqCst).wrapping_sub(seen) > 1;
            assert!(
                !is_over || is_taken(),
                "round {round}: nobody wakes up for {line}"
            );
            std::thread::yield_now();
        }
        // Lets it come to its wait, and into the middle of it.
        for _ in 0..round % 7 * 5 {
            std::hint::spin_loop();
        }
    }
}

#[test]
fn who_waits_is_woken() {
    let distributor = Distributor::new();
    distributor.set_lines(288);
    let redistributors = [const { Redistributor::new() }; 2];
    let vgic = Vgic::new(&distributor, &redistributors);
    let (bells, online) = (Bells::default(), Barrier::new(2));
    let counts = [const { AtomicU32::new(0) }; 288];
    let mut cpu = Poller::new(false);
    let mut bank = Bank::new();
    let control = RegisterAccess {
        offset: 0,
        ..word(0, 0)
    };
    let edges = RegisterAccess {
        offset: 0xC0C,
        ..word(0, 0)
    };
    vgic.write(0, &mut bank, &mut cpu, control, 3);
    vgic.write(0, &mut bank, &mut cpu, edges, 0xAAAA_AAAA);
    vgic.write(0, &mut bank, &mut cpu, word(LINE, 0x100), 1 << (LINE % 32));
    std::thread::scope(|scope| {
        scope.spawn(|| wait_for_each(&vgic, &redistributors[0], &bells, &counts, &online));
        online.wait();
        // Its end, too, if a wake-up is lost: else the other thread would wait for ever.
        let woken =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| wake_each(&vgic, &bells, &counts)));
        counts[0].store(1, SeqCst);
        if let Err(cause) = woken {
            std::panic::resume_unwind(cause);
        }
    });
    let taken: u32 = counts[1..].iter().map(|count| count.load(SeqCst)).sum();
    assert_eq!(taken, WAKES);
}

const SET_ACTIVE: u32 = 0x300;
const CLEAR_ACTIVE: u32 = 0x380;

/// Makes all lines of the word active and inactive, at the same time as the other vCPU does. Then no vCPU has
/// any of the lines.
fn activate_all(me: usize, vgic: &Vgic<'_>, both: &Barrier) {
    let mut cpu = Poller::new(false);
    let mut bank = Bank::new();
    for round in 0..ROUNDS {
        both.wait();
        for register in [SET_ACTIVE, CLEAR_ACTIVE] {
            vgic.write(me, &mut bank, &mut cpu, word(LINE, register), u32::MAX.into());
        }
        both.wait();
        let kept: Vec<_> = (32..64).filter(|line| vgic.takers(*line) != 0).collect();
        assert!(kept.is_empty(), "round {round}: lines {kept:?} keep a holder");
    }
}

#[test]
fn activity_from_two_sides_leaves_no_holder() {
    let distributor = Distributor::new();
    distributor.set_lines(288);
    let redistributors = [Redistributor::new(), Redistributor::new()];
    let vgic = Vgic::new(&distributor, &redistributors);
    let both = Barrier::new(2);
    std::thread::scope(|scope| {
        let (vgic, both) = (&vgic, &both);
        scope.spawn(move || activate_all(0, vgic, both));
        activate_all(1, vgic, both);
    });
}
