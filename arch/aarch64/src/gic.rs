// SPDX-License-Identifier: Apache-2.0
//! Interrupts: the physical GIC, and between it and the guests the virtual one (`arch/vgic`). The version of
//! both is the one that the crate is built for.
//!
//! An interrupt of the running guest is acknowledged, its priority is dropped, it is latched in the virtual
//! GIC and moved into a list register, all without leaving the exit handler ([`interrupt`], [`resume`]). If
//! the vCPU is loaded on another pCPU, the interrupt is latched, and that pCPU is *kicked* by a
//! software-generated interrupt and does the second half. If the vCPU is loaded nowhere, the interrupt is a
//! matter of scheduling: [`Exit::Wake`].
//!
//! `WIRES.kicked[pcpu]` is the set of vCPUs that are kicked. Only a pCPU that adds to an empty set sends the
//! interrupt, and the receiver takes the whole set, so any number of kicks costs one. A vCPU may be loaded
//! when the kicker looks, but not any more when the interrupt arrives. Such a vCPU is reported to the kernel
//! instead, so no wake-up is lost in between.
//!
//! The timers' private lines are linked. A line that the guest has enabled is enabled physically while the
//! guest is loaded, and the guest's end of interrupt ends the physical one. The lines cannot storm, because
//! an acknowledged interrupt is active until the guest ends it or the virtual GIC gives it back.

mod guest;
#[cfg_attr(feature = "gic-v2", path = "gic/interface_v2.rs")]
mod interface;
mod lines;
mod local;
#[cfg_attr(feature = "gic-v2", path = "gic/physical_v2.rs")]
mod physical;
mod short;
mod state;
mod switch;

pub(crate) use guest::{mmio_read, mmio_write, sysreg_write};
pub(crate) use interface::has_fine_priorities;
pub(crate) use lines::GicConfig;
pub(crate) use short::{
    deliver_timer, enable_changed, own_offset, read_own_word, read_word, send_to_one, send_to_self,
    sent_by_word, take_kick, write_own_word, write_word,
};
pub(crate) use state::{IDLE_BURST, PcpuIrq, VcpuIrq};
pub(crate) use switch::{close, load, load_fast, switch_fast, unload};

use crate::parking::park;
use crate::sysreg::{instruction, write_guest_register};
use bulkhead_arch_api::class::device::{GIC_V2, GIC_V3};
use bulkhead_arch_api::{
    Exit, GuestPhys, Line, LineRoute, PartitionId, PartitionKind, PcpuId, VcpuId, VcpuPlan, VcpuSet,
    VirtualDevice, VirtualLine,
};
use bulkhead_arch_vgic::{Hardware, Latched, NO_VCPU, PhysicalLines, Redistributor};
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use interface::{Interface, SPURIOUS};
use local::{Local, SharedLines, kick};
use state::{
    CRITICAL, DISTRIBUTORS, MaybeVcpu, PCPU_ROUTES, PHYSICAL_TIMER_LINE, REDISTRIBUTORS, ROUTED, ROUTES,
    ROUTES_END, SGI_KICK, SGI_SIGNAL, SGI_STOP, VERSION_2, VIRTUAL_TIMER_LINE, VMS, WIRES, call, hand_over,
    pcpu_route, vgic_by_id, vgic_of,
};

/// The virtual interrupt controller of a VM: where its registers are, and its lines.
pub(crate) struct Controller {
    /// Distributor; redistributors or CPU interface.
    windows: [(u64, u64); 2],
    lines: u32,
}

impl Controller {
    /// Returns the controller among the virtual devices of a partition, if there is one.
    pub(crate) fn of(lines: u32, devices: impl Iterator<Item = VirtualDevice>) -> Option<Self> {
        let mut windows = [(0, 0); 2];
        let is_own = |device: &VirtualDevice| [GIC_V2.number, GIC_V3.number].contains(&device.kind());
        for device in devices.filter(is_own) {
            if let Some(window) = windows.get_mut(usize::from(device.window())) {
                *window = (device.base(), device.size().into());
            }
        }
        let [(_, size), _] = windows;
        (size != 0).then_some(Self { windows, lines })
    }
}

/// Returns the place of a GICv2's virtual CPU interface in a VM, all but `GICC_DIR`: the guest's address, the
/// hardware's address, bytes.
#[cfg(feature = "gic-v2")]
pub(crate) fn interface_mapping(controller: &Controller) -> Option<(GuestPhys, u64, u64)> {
    let [_, (guest, size)] = controller.windows;
    let (host, most) = physical::virtual_interface()?;
    Some((GuestPhys(guest), host, size.min(most).min(guest::DEACTIVATE)))
}

/// Returns nothing: the CPU interface of a GICv3 is not memory-mapped.
#[cfg(not(feature = "gic-v2"))]
pub(crate) fn interface_mapping(_controller: &Controller) -> Option<(GuestPhys, u64, u64)> {
    None
}

/// Brings up the distributor. Called once, by the boot pCPU. Returns false if the distributor does not take a
/// change.
///
/// # Safety
/// The windows belong to a GIC of the version this is built for and are mapped as device memory for good.
pub(crate) unsafe fn init_distributor(config: &GicConfig) -> bool {
    // SAFETY: the caller's promise.
    unsafe { physical::init_distributor(config) }
}

/// Brings up this pCPU's part. Returns false if the controller has none for `mpidr`, or one that does not
/// take a change.
pub(crate) fn init_pcpu(p: &mut PcpuIrq, id: PcpuId, mpidr: u64) -> bool {
    let Some(controller) = physical::controller() else {
        return false;
    };
    let Some(redistributor) = controller.redistributor(mpidr) else {
        return false;
    };
    if !redistributor.init() {
        return false;
    }
    interface::init();
    let GicConfig {
        maintenance,
        hypervisor_timer,
        virtual_timer,
        physical_timer,
        ..
    } = controller.config;
    p.id = id;
    p.redistributor = Some(redistributor);
    (p.maintenance, p.hypervisor_timer) = (maintenance, hypervisor_timer);
    (p.virtual_timer, p.physical_timer) = (virtual_timer, physical_timer);
    for line in [SGI_SIGNAL, SGI_KICK, SGI_STOP, maintenance, hypervisor_timer] {
        redistributor.line(line).set_own_priority();
        redistributor.line(line).enable();
    }
    redistributor.line(hypervisor_timer).set_deadline_priority();
    if let (Some(affinity), Some(call)) = (
        PCPU_ROUTES.get(usize::from(id.0)),
        WIRES.calls.get(usize::from(id.0)),
    ) {
        call.store(interface::call_of(mpidr), SeqCst);
        affinity.store(controller.route_to(mpidr), SeqCst);
    }
    true
}

/// See [`bulkhead_arch_api::Vcpus::adopt`].
pub(crate) fn adopt(v: &mut VcpuIrq, id: VcpuId, plan: &VcpuPlan, pcpu: PcpuId) {
    (v.id, v.index, v.partition) = (id, usize::from(plan.index), plan.partition);
    (v.first, v.count) = (plan.first.0, plan.count);
    if let Some(home) = WIRES.home.get(usize::from(id.0)) {
        home.store(pcpu.0, SeqCst);
    }
    let own = REDISTRIBUTORS
        .get(usize::from(id.0))
        .filter(|_| plan.kind == PartitionKind::Vm);
    v.own = own;
    let Some(own) = own else {
        return;
    };
    own.make_blank(VERSION_2);
    v.vgic = vgic_of(plan.partition, v.first, v.count);
    if let Some(vcpus) = WIRES.vcpus.get(usize::from(plan.partition.0)) {
        vcpus.store(u32::from_le_bytes([plan.first.0, plan.count, 0, 0]), SeqCst);
    }
    if let Some(controller) = physical::controller() {
        own.link(VIRTUAL_TIMER_LINE, controller.config.virtual_timer);
        own.link(PHYSICAL_TIMER_LINE, controller.config.physical_timer);
    }
    if plan.index == 0 {
        // These lines were routed before this vCPU's pCPU was known.
        for (line, route) in (0..).zip(ROUTES.iter().take(ROUTES_END.load(SeqCst))) {
            if owner(route.load(SeqCst)).is_some_and(|(partition, _)| partition == plan.partition) {
                SharedLines(plan.first.0).set_target(line, 0);
            }
        }
    }
}

/// Stores the place of the guest's interrupt controller. See [`bulkhead_arch_api::Spaces::build`].
pub(crate) fn configure(partition: PartitionId, controller: Option<&Controller>) {
    let Some(controller) = controller else { return };
    let [(distributor, _), (second, _)] = controller.windows;
    if let Some(vm) = VMS.get(usize::from(partition.0)) {
        vm.distributor.store(distributor, SeqCst);
        vm.second.store(second, SeqCst);
    }
    if let Some(shared) = DISTRIBUTORS.get(usize::from(partition.0)) {
        shared.set_lines(controller.lines);
    }
}

/// See [`bulkhead_arch_api::Spaces::reset_shared`].
pub(crate) fn reset_shared(partition: PartitionId, part: u32) -> Option<u32> {
    let (vgic, first) = vgic_by_id(partition)?;
    vgic.reset_shared(part as usize, VERSION_2, &mut SharedLines(first))
        .and_then(|next| u32::try_from(next).ok())
}

/// Finds the addresses of the guest's interrupt controller, once its partition's space is built.
pub(crate) fn find_registers(v: &mut VcpuIrq) {
    if let Some(vm) = VMS.get(usize::from(v.partition.0)) {
        v.distributor = vm.distributor.load(SeqCst);
        v.second = vm.second.load(SeqCst);
        v.frame = guest::frame_of(v.second, v.index);
    }
}

/// See [`bulkhead_arch_api::Vcpus::reset`]. Requires: the vCPU is not loaded.
#[inline(always)]
pub(crate) fn reset(p: &mut PcpuIrq, v: &mut VcpuIrq) {
    if let (Some(vgic), Some(own)) = (&v.vgic, v.own)
        && !vgic.reset_quietly(v.index, own, &mut v.bank)
    {
        reset_all(p, v);
    }
}

#[inline(never)]
fn reset_all(p: &mut PcpuIrq, v: &mut VcpuIrq) {
    if let Some(vgic) = v.vgic() {
        vgic.reset(
            v.index,
            &mut v.bank,
            &mut Local {
                pcpu: p,
                first: v.first,
            },
        );
    }
}

/// See [`bulkhead_arch_api::Vcpus::detach`]. The vCPU is not loaded afterwards.
pub(crate) fn detach(p: &mut PcpuIrq, v: &mut VcpuIrq) {
    drop_loaded(p, v);
    if let (Some(vgic), Some(_)) = (v.vgic(), v.own) {
        vgic.detach(
            v.index,
            &mut v.bank,
            &mut Local {
                pcpu: p,
                first: v.first,
            },
        );
        // A line that any vCPU takes may now be another one's.
        let wake = p.take_wake();
        hand_over(p, wake);
    }
}

fn drop_loaded(p: &mut PcpuIrq, v: &mut VcpuIrq) {
    if p.loaded == MaybeVcpu::some(v.id) {
        unload(p, v);
        close();
    }
}

/// See [`bulkhead_arch_api::Vcpus::has_work`].
#[inline(always)]
pub(crate) fn has_work(v: &mut VcpuIrq) -> bool {
    v.own.is_some_and(|own| !own.is_quiet(&v.bank, &Interface)) && finds_work(v)
}

/// Tells whether the vCPU has a virtual GIC.
#[inline(always)]
pub(crate) const fn is_vm(v: &VcpuIrq) -> bool {
    v.own.is_some()
}

/// Takes the short way of [`has_work`] for the vCPU that waits just now. The answer false decides nothing.
#[inline(always)]
pub(crate) fn is_idle(v: &VcpuIrq) -> bool {
    !is_vm(v) || is_quiet(v)
}

/// Does the same as [`is_idle`], for a vCPU that has a virtual GIC.
#[inline(always)]
pub(crate) fn is_quiet(v: &VcpuIrq) -> bool {
    v.bank.is_idle(&Interface)
}

#[inline(never)]
fn finds_work(v: &mut VcpuIrq) -> bool {
    v.vgic
        .is_some_and(|vgic| vgic.has_work(v.index, &mut v.bank, &Interface))
}

/// See [`bulkhead_arch_api::Vcpus::inject`].
pub(crate) fn inject(p: &mut PcpuIrq, partition: PartitionId, line: VirtualLine) -> VcpuSet {
    if let Some((vgic, first)) = vgic_by_id(partition) {
        vgic.raise(NO_VCPU, line.0, &mut Local { pcpu: p, first });
    }
    p.take_wake()
}

/// See [`bulkhead_arch_api::Vcpus::pulse`].
pub(crate) fn pulse(p: &mut PcpuIrq, partition: PartitionId, line: VirtualLine) -> VcpuSet {
    match pulse_quickly(p, partition, line) {
        Pulsed::Done => VcpuSet::EMPTY,
        Pulsed::Woken(vcpu) => VcpuSet::of(vcpu),
        Pulsed::Loose => pulsed(p, partition, line),
    }
}

/// The rest of [`pulse`] after its short way.
pub(crate) enum Pulsed {
    /// Nothing.
    Done,
    /// This vCPU became due.
    Woken(VcpuId),
    /// [`pulsed`] must follow: no vCPU has the line.
    Loose,
}

/// Does [`pulse`] without a call if a vCPU has the line in a list register.
#[inline(always)]
pub(crate) fn pulse_quickly(p: &PcpuIrq, partition: PartitionId, line: VirtualLine) -> Pulsed {
    let index = usize::from(partition.0);
    let (Some(distributor), Some(vcpus)) = (DISTRIBUTORS.get(index), WIRES.vcpus.get(index)) else {
        return Pulsed::Done;
    };
    match distributor.latch(line.0) {
        Latched::Already => Pulsed::Done,
        Latched::Held(holder) => {
            let [first, ..] = vcpus.load(Relaxed).to_le_bytes();
            let vcpu = VcpuId(first.wrapping_add(holder));
            let held = REDISTRIBUTORS.get(usize::from(vcpu.0));
            if held.is_some_and(|own| own.note(line.0)) && kick(p.id, vcpu) {
                Pulsed::Done
            } else {
                Pulsed::Woken(vcpu)
            }
        }
        Latched::Loose => Pulsed::Loose,
    }
}

/// Does the rest of [`pulse`] for a line that no vCPU has.
#[inline(never)]
pub(crate) fn pulsed(p: &mut PcpuIrq, partition: PartitionId, line: VirtualLine) -> VcpuSet {
    if let Some((vgic, first)) = vgic_by_id(partition) {
        vgic.pulsed(NO_VCPU, line.0, &mut Local { pcpu: p, first });
    }
    p.take_wake()
}

/// See [`bulkhead_arch_api::Vcpus::withdraw`].
pub(crate) fn withdraw(_p: &mut PcpuIrq, partition: PartitionId, line: VirtualLine) {
    if let Some((vgic, _)) = vgic_by_id(partition) {
        vgic.lower(line.0);
    }
}

fn owner(route: u32) -> Option<(PartitionId, u32)> {
    (route & ROUTED != 0).then_some((PartitionId((route >> 16) as u8), route & 0xFFFF))
}

fn route_of(line: u32) -> Option<u32> {
    let route = ROUTES.get(line as usize)?.load(SeqCst);
    (route & ROUTED != 0).then_some(route)
}

/// See [`bulkhead_arch_api::Irqs::route`].
pub(crate) fn route(
    p: &mut PcpuIrq,
    line: Line,
    partition: PartitionId,
    LineRoute {
        virtual_line,
        edge,
        critical,
        latency: _,
        early: _,
    }: LineRoute,
) {
    let (Some(controller), Some(route)) = (physical::controller(), ROUTES.get(line.0 as usize)) else {
        return;
    };
    let Some(shared) = DISTRIBUTORS
        .get(usize::from(partition.0))
        .filter(|_| line.0 >= 32)
    else {
        return;
    };
    controller.shared(line.0).disable();
    controller.settle();
    controller.shared(line.0).set_edge(edge);
    controller.shared(line.0).set_guest_priority(0);
    ROUTES_END.fetch_max(line.0 as usize + 1, SeqCst);
    route.store(
        ROUTED | if critical { CRITICAL } else { 0 } | u32::from(partition.0) << 16 | virtual_line.0 & 0xFFFF,
        SeqCst,
    );
    shared.link(virtual_line.0, line.0);
    if let Some(affinity) = pcpu_route(p.id.0) {
        controller.set_route(line.0, affinity);
    }
    if let Some((_, first)) = vgic_by_id(partition) {
        SharedLines(first).set_target(line.0, 0);
    }
}

/// See [`bulkhead_arch_api::Irqs::enable`].
pub(crate) fn enable(p: &mut PcpuIrq, line: Line, edge: bool) {
    if let Some(registers) = own_line(p, line) {
        registers.set_edge(edge);
        registers.set_own_priority();
        if let (Some(controller), Some(affinity), true) =
            (physical::controller(), pcpu_route(p.id.0), line.0 >= 32)
        {
            controller.set_route(line.0, affinity);
        }
        registers.enable();
    }
}

/// See [`bulkhead_arch_api::Irqs::disable`].
pub(crate) fn disable(p: &mut PcpuIrq, line: Line) {
    if let Some(registers) = own_line(p, line) {
        registers.disable();
    }
}

/// See [`bulkhead_arch_api::Irqs::complete`].
pub(crate) fn complete(_p: &mut PcpuIrq, line: Line) {
    interface::deactivate(line.0);
}

/// Returns the registers of a line of the hypervisor's own.
fn own_line(p: &PcpuIrq, line: Line) -> Option<lines::LineRegisters> {
    match line.0 {
        0..16 => None,
        16..32 => p.private(line.0),
        _ => physical::controller().map(|controller| controller.shared(line.0)),
    }
}

/// See [`bulkhead_arch_api::Cpus::signal`].
pub(crate) fn signal(_p: &mut PcpuIrq, target: PcpuId) {
    call(target.0, SGI_SIGNAL);
}

/// Ends all other pCPUs: at once on a pCPU that runs a partition, else before it runs one.
pub(crate) fn stop_others() {
    if physical::controller().is_some() {
        interface::send_to_others(SGI_STOP);
    }
}

/// Delivers interrupts as the last step before the guest is entered from outside an exit handler.
#[inline(always)]
pub(crate) fn resume(p: &mut PcpuIrq, v: &mut VcpuIrq) {
    if let Some(own) = v.own
        && own.is_dirty()
        && !own.deliver_again(&mut v.bank, &mut Interface)
    {
        let wake = service(p, v);
        hand_over(p, wake);
    }
}

/// Delivers an interrupt by one of the two short ways. Returns false if more is to be done.
#[inline(always)]
fn deliver(own: &Redistributor, v: &mut VcpuIrq) -> bool {
    if own.has_private_mark() {
        own.deliver_again(&mut v.bank, &mut Interface)
    } else {
        v.vgic
            .is_some_and(|vgic| vgic.deliver_shared(own, &v.bank, &mut Interface))
    }
}

/// Does all work before the guest goes on. Returns the vCPUs that became due by this work.
#[inline(always)]
pub(crate) fn settle(p: &mut PcpuIrq, v: &mut VcpuIrq) -> VcpuSet {
    if let Some(own) = v.own
        && !deliver(own, v)
    {
        return service(p, v);
    }
    VcpuSet::EMPTY
}

/// Tells whether [`resume`] has nothing to do.
#[inline(always)]
pub(crate) fn is_settled(v: &VcpuIrq) -> bool {
    !v.own.is_some_and(Redistributor::is_dirty)
}

#[inline(never)]
fn service(p: &mut PcpuIrq, v: &mut VcpuIrq) -> VcpuSet {
    if let Some(vgic) = v.vgic() {
        vgic.service(
            v.index,
            &mut v.bank,
            &mut Local {
                pcpu: p,
                first: v.first,
            },
        );
    }
    p.take_wake()
}

/// Takes the most urgent pending interrupt of this pCPU.
#[inline(always)]
pub(crate) fn acknowledge() -> u32 {
    interface::acknowledge()
}

/// Handles an acknowledged interrupt that was taken while the vCPU ran. After `None`, the caller goes on with
/// [`resume`].
pub(crate) fn interrupt(p: &mut PcpuIrq, v: &mut VcpuIrq, line: u32) -> Option<Exit> {
    handle(p, Some(v), line)
}

/// Tells whether nothing was acknowledged.
#[inline(always)]
pub(crate) const fn is_none(line: u32) -> bool {
    line >= SPURIOUS
}

/// Finishes an acknowledged signal of another pCPU. Returns false if the interrupt is none.
#[inline(always)]
pub(crate) fn takes_signal(line: u32) -> bool {
    let is_signal = line == SGI_SIGNAL;
    if is_signal {
        interface::deactivate(line);
    }
    is_signal
}

/// Handles an acknowledged interrupt outside a guest, for [`bulkhead_arch_api::Cpus::wait`].
pub(crate) fn handle_idle(p: &mut PcpuIrq, line: u32) -> Option<Exit> {
    handle(p, None, line)
}

/// Tells whether an acknowledged interrupt is about the list registers of the loaded vCPU: a kick, or the
/// maintenance interrupt.
pub(crate) fn concerns_loaded(p: &PcpuIrq, line: u32) -> bool {
    line == SGI_KICK || line == p.maintenance
}

/// Handles such an interrupt of a vCPU that is loaded and does not run. Another pCPU may wait for the
/// contents of the list registers, and a maintenance interrupt stays until its cause is gone.
#[cold]
pub(crate) fn answer(p: &mut PcpuIrq, v: &mut VcpuIrq, line: u32) {
    if let (Some(vgic), true) = (v.vgic(), p.loaded == MaybeVcpu::some(v.id)) {
        let is_maintenance = line == p.maintenance;
        let (first, index) = (v.first, v.index);
        let local = &mut Local { pcpu: p, first };
        if is_maintenance {
            vgic.maintain(index, &mut v.bank, local);
        } else {
            vgic.answer(index, &mut v.bank, local);
        }
        let wake = p.take_wake();
        hand_over(p, wake);
    }
}

/// Takes an acknowledged interrupt if it is the hypervisor's own timer. Tells whether it was.
#[inline(always)]
pub(crate) fn takes_deadline(p: &PcpuIrq, line: u32) -> bool {
    let is_it = line == p.hypervisor_timer;
    if is_it {
        write_guest_register!("cnthp_ctl_el2", 0);
        instruction!("isb");
        interface::deactivate(line);
    }
    is_it
}

/// Handles an acknowledged interrupt. `running` is the vCPU that it interrupted.
fn handle(p: &mut PcpuIrq, running: Option<&mut VcpuIrq>, line: u32) -> Option<Exit> {
    if line >= SPURIOUS {
        return None;
    }
    if takes_deadline(p, line) {
        return Some(Exit::Deadline);
    }
    if takes_signal(line) {
        return Some(Exit::Signal);
    }
    if line == SGI_STOP {
        park();
    }
    if line == SGI_KICK {
        interface::deactivate(line);
        let kicked = WIRES
            .kicked
            .get(usize::from(p.id.0))
            .map_or(0, |kicked| kicked.swap(0, SeqCst));
        // The running vCPU looks for interrupts itself on its way back.
        let others = kicked & !running.map_or(0, |v| VcpuSet::of(v.id).0);
        return (others != 0).then_some(Exit::Wake(VcpuSet(others)));
    }
    if line == p.maintenance {
        if let Some(v) = running
            && let Some(vgic) = v.vgic()
        {
            vgic.maintain(
                v.index,
                &mut v.bank,
                &mut Local {
                    pcpu: p,
                    first: v.first,
                },
            );
        }
        interface::deactivate(line);
        let wake = p.take_wake();
        return (!wake.is_empty()).then_some(Exit::Wake(wake));
    }
    if line == p.virtual_timer || line == p.physical_timer {
        return timer(p, running.is_some(), line);
    }
    match route_of(line) {
        Some(route) => device(p, running, line, route),
        None => Some(Exit::Interrupt(Line(line))),
    }
}

/// Handles an interrupt of a timer of the loaded vCPU, which runs or waits.
fn timer(p: &mut PcpuIrq, running: bool, line: u32) -> Option<Exit> {
    let guest_line = if line == p.virtual_timer {
        VIRTUAL_TIMER_LINE
    } else {
        PHYSICAL_TIMER_LINE
    };
    let wanted = p.wanted >> (line & 31) & 1 != 0;
    let vcpu = p.loaded.get().filter(|_| wanted);
    let own = vcpu.and_then(|vcpu| REDISTRIBUTORS.get(usize::from(vcpu.0)));
    let (Some(own), Some(vcpu)) = (own, vcpu) else {
        // The interrupt belongs to no partition: it was on its way while its vCPU was unloaded, or the loaded
        // vCPU has not enabled it.
        let wanted = p.loaded.get().map_or(0, |_| p.wanted);
        Local { pcpu: p, first: 0 }.enable_private(wanted);
        interface::deactivate(line);
        return None;
    };
    own.raise(guest_line);
    (!running).then_some(Exit::Wake(VcpuSet::of(vcpu)))
}

/// Handles an interrupt of a physical line of a partition.
fn device(p: &mut PcpuIrq, running: Option<&mut VcpuIrq>, line: u32, route: u32) -> Option<Exit> {
    let (partition, virtual_line) = (PartitionId((route >> 16) as u8), route & 0xFFFF);
    let Some((vgic, first)) = vgic_by_id(partition) else {
        SharedLines(0).set_enabled(line, false);
        interface::deactivate(line);
        return None;
    };
    let me = running
        .filter(|v| v.partition == partition && v.own.is_some())
        .map_or(NO_VCPU, |v| v.index);
    vgic.raise_linked(me, virtual_line, &mut Local { pcpu: p, first });
    let mut wake = p.take_wake();
    if route & CRITICAL != 0 {
        // A vCPU that runs, here or on another pCPU, is told as well: scheduling decides how it goes on.
        wake.insert_all(VcpuSet(u64::from(vgic.takers(virtual_line)) << first));
    }
    (!wake.is_empty()).then_some(Exit::Device(wake, Line(line)))
}
