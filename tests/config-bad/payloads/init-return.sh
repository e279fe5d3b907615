#!/bin/sh
echo hello
