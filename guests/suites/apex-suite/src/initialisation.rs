// SPDX-License-Identifier: Apache-2.0
//! The services of the initialisation.

use crate::{FOREVER, PERIOD, apex, attributes, check, check_that};
use bulkhead_apex::ReturnCode::{InvalidConfig, InvalidMode, InvalidParam, NoAction};
use bulkhead_apex::{
    Attributes, Name, OperatingMode, PortDirection, QueueSize, QueuingDiscipline, StartCondition,
};

const FIFO: QueuingDiscipline = QueuingDiscipline::Fifo;

/// Checks all, makes what the other parts need, and leaves the initialisation.
pub(crate) fn check_all() {
    let status = apex::get_partition_status();
    check_that(
        "GET_PARTITION_STATUS COLD_START NORMAL_START",
        status.operating_mode == OperatingMode::ColdStart
            && status.start_condition == StartCondition::NormalStart,
    );
    check("GET_MY_ID", Err(InvalidMode), apex::get_my_id());
    check("LOCK_PREEMPTION", Err(NoAction), apex::lock_preemption());
    check("UNLOCK_PREEMPTION", Err(NoAction), apex::unlock_preemption());
    check("TIMED_WAIT", Err(InvalidMode), apex::timed_wait(1));
    check("REPLENISH", Err(NoAction), apex::replenish(1));
    check_processes();
    check_objects();
    check_ports();
    check(
        "CREATE_ERROR_HANDLER",
        Err(InvalidConfig),
        apex::create_error_handler(crate::processes::handler_entry, 0),
    );
    check(
        "CREATE_ERROR_HANDLER",
        Ok(()),
        apex::create_error_handler(crate::processes::handler_entry, 8192),
    );
    check(
        "CREATE_ERROR_HANDLER",
        Err(NoAction),
        apex::create_error_handler(crate::processes::handler_entry, 8192),
    );
    check(
        "SET_PARTITION_MODE",
        Err(InvalidMode),
        apex::set_partition_mode(OperatingMode::WarmStart),
    );
    check(
        "SET_PARTITION_MODE",
        Ok(()),
        apex::set_partition_mode(OperatingMode::Normal),
    );
}

fn check_processes() {
    let caller = attributes("caller", 50);
    check(
        "CREATE_PROCESS",
        Ok(()),
        apex::create_process(&caller, crate::caller_entry),
    );
    check(
        "CREATE_PROCESS",
        Err(NoAction),
        apex::create_process(&caller, crate::caller_entry),
    );
    let wrong = Attributes {
        base_priority: 0,
        ..attributes("wrong", 1)
    };
    check(
        "CREATE_PROCESS",
        Err(InvalidParam),
        apex::create_process(&wrong, crate::caller_entry),
    );
    let odd = Attributes {
        period: PERIOD + 1,
        ..attributes("odd", 1)
    };
    check(
        "CREATE_PROCESS",
        Err(InvalidConfig),
        apex::create_process(&odd, crate::caller_entry),
    );
    let helper = attributes("helper", 10);
    check(
        "CREATE_PROCESS",
        Ok(()),
        apex::create_process(&helper, crate::processes::helper_entry),
    );
    let periodic = Attributes {
        period: PERIOD,
        time_capacity: PERIOD,
        ..attributes("periodic", 60)
    };
    check(
        "CREATE_PROCESS",
        Ok(()),
        apex::create_process(&periodic, crate::processes::periodic_entry),
    );
    check("START", Err(InvalidParam), apex::start(99));
    check("START", Ok(()), apex::start(1));
    check("START", Err(NoAction), apex::start(1));
    check(
        "GET_PROCESS_ID",
        Ok(()),
        apex::get_process_id(&Name::new("helper")),
    );
    check(
        "GET_PROCESS_ID",
        Err(InvalidConfig),
        apex::get_process_id(&Name::new("none")),
    );
}

pub(crate) fn check_objects() {
    let (name, none) = (Name::new("object"), Name::new("none"));
    check(
        "CREATE_SEMAPHORE",
        Ok(()),
        apex::create_semaphore(name, 1, 2, FIFO),
    );
    check(
        "CREATE_SEMAPHORE",
        Err(NoAction),
        apex::create_semaphore(name, 1, 2, FIFO),
    );
    check(
        "CREATE_SEMAPHORE",
        Err(InvalidParam),
        apex::create_semaphore(none, 3, 2, FIFO),
    );
    check("CREATE_EVENT", Ok(()), apex::create_event(name));
    check("CREATE_EVENT", Err(NoAction), apex::create_event(name));
    check("CREATE_MUTEX", Ok(()), apex::create_mutex(name, 55, FIFO));
    check("CREATE_MUTEX", Err(NoAction), apex::create_mutex(name, 55, FIFO));
    check(
        "CREATE_MUTEX",
        Err(InvalidParam),
        apex::create_mutex(none, 0, FIFO),
    );
    check("CREATE_BUFFER", Ok(()), apex::create_buffer(name, 8, 1, FIFO));
    check(
        "CREATE_BUFFER",
        Err(NoAction),
        apex::create_buffer(name, 8, 1, FIFO),
    );
    check(
        "CREATE_BUFFER",
        Err(InvalidParam),
        apex::create_buffer(none, 0, 1, FIFO),
    );
    check(
        "CREATE_BUFFER",
        Err(InvalidConfig),
        apex::create_buffer(none, 512, 9999, FIFO),
    );
    check("CREATE_BLACKBOARD", Ok(()), apex::create_blackboard(name, 8));
    check(
        "CREATE_BLACKBOARD",
        Err(NoAction),
        apex::create_blackboard(name, 8),
    );
    check(
        "CREATE_BLACKBOARD",
        Err(InvalidParam),
        apex::create_blackboard(none, 0),
    );
    check("GET_SEMAPHORE_ID", Ok(()), apex::get_semaphore_id(&name));
    check(
        "GET_SEMAPHORE_ID",
        Err(InvalidConfig),
        apex::get_semaphore_id(&none),
    );
    check("GET_EVENT_ID", Ok(()), apex::get_event_id(&name));
    check("GET_EVENT_ID", Err(InvalidConfig), apex::get_event_id(&none));
    check("GET_MUTEX_ID", Ok(()), apex::get_mutex_id(&name));
    check("GET_MUTEX_ID", Err(InvalidConfig), apex::get_mutex_id(&none));
    check("GET_BUFFER_ID", Ok(()), apex::get_buffer_id(&name));
    check("GET_BUFFER_ID", Err(InvalidConfig), apex::get_buffer_id(&none));
    check("GET_BLACKBOARD_ID", Ok(()), apex::get_blackboard_id(&name));
    check(
        "GET_BLACKBOARD_ID",
        Err(InvalidConfig),
        apex::get_blackboard_id(&none),
    );
    check("WAIT_SEMAPHORE", Ok(()), apex::wait_semaphore(1, FOREVER));
    check(
        "WAIT_SEMAPHORE",
        Err(InvalidMode),
        apex::wait_semaphore(1, FOREVER),
    );
}

pub(crate) fn check_ports() {
    let (source, destination) = (PortDirection::Source, PortDirection::Destination);
    let sampling =
        |name, size, direction| apex::create_sampling_port(Name::new(name), size, direction, PERIOD);
    check(
        "CREATE_SAMPLING_PORT",
        Err(InvalidConfig),
        sampling("none", 8, source),
    );
    check(
        "CREATE_SAMPLING_PORT",
        Err(InvalidConfig),
        sampling("sampling-in", 7, destination),
    );
    check(
        "CREATE_SAMPLING_PORT",
        Ok(()),
        sampling("sampling-out", 8, source),
    );
    check(
        "CREATE_SAMPLING_PORT",
        Ok(()),
        sampling("sampling-in", 8, destination),
    );
    check(
        "CREATE_SAMPLING_PORT",
        Err(NoAction),
        sampling("sampling-in", 8, destination),
    );
    let queuing = |name, messages, direction| {
        let size = QueueSize { message: 8, messages };
        apex::create_queuing_port(Name::new(name), size, direction, FIFO)
    };
    check(
        "CREATE_QUEUING_PORT",
        Err(InvalidConfig),
        queuing("none", 2, source),
    );
    check(
        "CREATE_QUEUING_PORT",
        Err(InvalidConfig),
        queuing("queuing-in", 3, destination),
    );
    check("CREATE_QUEUING_PORT", Ok(()), queuing("queuing-out", 2, source));
    check(
        "CREATE_QUEUING_PORT",
        Ok(()),
        queuing("queuing-in", 2, destination),
    );
    check(
        "CREATE_QUEUING_PORT",
        Err(NoAction),
        queuing("queuing-in", 2, destination),
    );
}
